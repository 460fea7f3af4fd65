import type { BerthProcess } from './berth-process.ts';

/** One request of the REST or job API; throws where it is refused. */
export async function callBerth<T>(
  { url, key }: BerthProcess,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answers ${response.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
