/** A small HTTP client: the answer whole, whatever its status. */
export interface Answer<T = unknown> {
  status: number;
  headers: Headers;
  text: string;
  body: T;
}

export interface Client {
  url: string;
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>>;
  graphql<T = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<Answer<{ data?: T; errors?: { message: string; extensions?: { code: string } }[] }>>;
}

/** A body that is a string or bytes goes out as it is; anything else as JSON. */
export function clientOf(url: string, key: string | undefined): Client {
  const call: Client['call'] = async (method, path, body, headers = {}) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: raw ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parsed(text) as never };
  };
  return {
    url,
    call,
    graphql: (query, variables) =>
      call('POST', '/graphql', { query, ...(variables !== undefined && { variables }) }),
  };
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
