import type { Language } from './snippets.ts';

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

export interface HttpCall {
  /** What the paths of the endpoint begin with. */
  base: string;
  method: Method;
  path: string;
  body: string;
}

/** A larger body is read from a file: nobody reads it in a program. */
const MAX_INLINE = 10_000;
const FILE = 'request.body';

/** The address of a call; undefined where the path would lead out of the endpoint. */
export function callUrl({ base, path }: Pick<HttpCall, 'base' | 'path'>): string | undefined {
  const url = new URL(`${base}/${path.replace(/^\/+/, '')}`);
  return url.href.startsWith(`${base}/`) ? url.href : undefined;
}

/** What the call sends; undefined where its method has no body or there is none. */
export function sentBody({ method, body }: Pick<HttpCall, 'method' | 'body'>): string | undefined {
  return method === 'GET' || body === '' ? undefined : body;
}

export function contentTypeOf(body: string): string {
  try {
    JSON.parse(body);
    return 'application/json';
  } catch {
    return 'text/plain; charset=utf-8';
  }
}

/** The call as a program. The key is read from the environment: it belongs in no text. */
export function httpSnippet(language: Language, call: HttpCall): string {
  const program = { curl, python, typescript }[language];
  const url = callUrl(call);
  return url === undefined ? '' : program(url, call.method, sentBody(call)).join('\n');
}

function curl(url: string, method: Method, body: string | undefined): string[] {
  const lines = [
    `curl -s -X ${method} ${shellText(url)}`,
    '  -H "Authorization: Bearer $BERTH_API_KEY"',
    ...(body === undefined
      ? []
      : [
          `  -H ${shellText(`Content-Type: ${contentTypeOf(body)}`)}`,
          `  --data-binary ${body.length > MAX_INLINE ? `@${FILE}` : shellText(body)}`,
        ]),
  ];
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}

function shellText(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function python(url: string, method: Method, body: string | undefined): string[] {
  return [
    'import os, requests',
    '',
    'headers = {',
    `    "Authorization": f"Bearer {os.environ['BERTH_API_KEY']}",`,
    ...(body === undefined ? [] : [`    "Content-Type": ${JSON.stringify(contentTypeOf(body))},`]),
    '}',
    // A JSON string is a Python string too.
    ...(body === undefined
      ? []
      : [
          body.length > MAX_INLINE
            ? `body = open("${FILE}", "rb")`
            : `body = ${JSON.stringify(body)}.encode()`,
        ]),
    `response = requests.request("${method}", ${JSON.stringify(url)}, headers=headers` +
      `${body === undefined ? '' : ', data=body'})`,
    'print(response.status_code, response.text)',
  ];
}

function typescript(url: string, method: Method, body: string | undefined): string[] {
  const isFile = body !== undefined && body.length > MAX_INLINE;
  return [
    ...(isFile ? ["import { readFileSync } from 'node:fs';", ''] : []),
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: '${method}',`,
    '  headers: {',
    '    Authorization: `Bearer ${process.env.BERTH_API_KEY}`,',
    ...(body === undefined ? [] : [`    'Content-Type': '${contentTypeOf(body)}',`]),
    '  },',
    ...(body === undefined ? [] : [`  body: ${isFile ? `readFileSync('${FILE}')` : JSON.stringify(body)},`]),
    '});',
    'console.log(response.status, await response.text());',
  ];
}
