/** A small HTTP client: the answer whole, whatever its status. */
export interface ApiResponse<T = unknown> {
  status: number;
  headers: Headers;
  text: string;
  body: T;
}

export interface ApiClient {
  url: string;
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiResponse<T>>;
  graphql<T = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<ApiResponse<{ data?: T; errors?: { message: string; extensions?: { code: string } }[] }>>;
}

/** A body that is a string or bytes goes out as it is; anything else as JSON. */
export function createApiClient(url: string, key: string | undefined): ApiClient {
  const call: ApiClient['call'] = async (method, path, body, headers = {}) => {
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
    return { status: response.status, headers: response.headers, text, body: parseJson(text) as never };
  };
  return {
    url,
    call,
    graphql: (query, variables) =>
      call('POST', '/graphql', { query, ...(variables !== undefined && { variables }) }),
  };
}

function parseJson(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
