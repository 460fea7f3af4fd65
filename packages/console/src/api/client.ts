/** An answer of the server that says no, in the server's own words. */
export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly details: readonly string[];

  constructor(status: number, message: string, requestId?: string, details: readonly string[] = []) {
    super(message);
    this.status = status;
    this.requestId = requestId;
    this.details = details;
  }
}

/** The server did not answer at all. */
class ConnectionError extends Error {
  constructor() {
    super('Berth does not answer. This page tries again by itself.');
  }
}

export interface RequestOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is: a file. */
  raw?: BodyInit;
  headers?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  signal?: AbortSignal;
}

const sessionEnded = new Set<() => void>();

/** Called when an answer says that nobody is signed in any more. */
export function onSessionEnded(listener: () => void): () => void {
  sessionEnded.add(listener);
  return () => sessionEnded.delete(listener);
}

/**
 * Reads or writes through the public API, with the session's cookie. Writes need the header: it keeps other
 * sites out.
 */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', body, raw, headers, query, signal } = options;
  let response: Response;
  try {
    response = await fetch(path + queryText(query), {
      method,
      headers: {
        accept: 'application/json',
        // Reads that the browser has made ahead have no such header, and would not be the same request.
        ...(method !== 'GET' && { 'x-berth-console': '1' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: raw ?? (body === undefined ? null : JSON.stringify(body)),
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ConnectionError();
  }
  if (response.ok) return response;
  const error = await readError(response);
  if (response.status === 401) for (const listener of sessionEnded) listener();
  throw error;
}

export async function api<T>(path: string, options?: RequestOptions): Promise<T> {
  const response = await send(path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

export function queryText(query: RequestOptions['query']): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '');
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** Problems of REST v2, `{error}` of the job API, or whatever text there is. */
async function readError(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const text = await response.text();
  const body = parse(text);
  const words =
    body?.['detail'] ?? body?.['error'] ?? body?.['message'] ?? body?.['title'] ?? text.slice(0, 500);
  const errors = body?.['errors'];
  const details = Array.isArray(errors) ? errors.map((entry) => describe(entry)) : [];
  return new ApiError(
    response.status,
    typeof words === 'string' && words !== '' ? words : `the server answered ${response.status}`,
    requestId,
    details.filter((line) => line !== words),
  );
}

function describe(entry: unknown): string {
  if (typeof entry === 'string') return entry;
  if (typeof entry === 'object' && entry !== null) {
    const { path, pointer, field, message, detail } = entry as Record<string, unknown>;
    return [path ?? pointer ?? field, message ?? detail].filter((part) => part !== undefined).join(': ');
  }
  return String(entry);
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
