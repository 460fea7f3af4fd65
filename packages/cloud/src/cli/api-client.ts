import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { WebSocket } from 'ws';
import { parseServerSentEvents } from './sse-parser.ts';
import type { ReceivedEvent } from './sse-parser.ts';
import { CliError } from './cli.errors.ts';
import { connectionError, noUpgradeError } from './connection-errors.ts';
import { escapeControlCharacters } from './output.ts';

/** Requests time out after this, so that a command does not hang. */
const REQUEST_TIMEOUT_MS = 30_000;
/** What the server says where a route is not known. */
const NO_SUCH_ADDRESS = 'no such address';
/**
 * How Berth refuses a plain request where a WebSocket is served: the headers of the upgrade were lost on the
 * way.
 */
const NEEDS_WEBSOCKET = 'a terminal is a WebSocket';
/** How Berth begins an answer about a body; what is wrong with it follows. */
const INVALID_BODY = 'Request validation failed.';
const VALID_KEY = /^[\x21-\x7e]+$/;

/** The server refused. */
export class ApiError extends CliError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface SendOptions {
  /** Milliseconds until the response must start; 0 for no timeout. */
  timeoutMs?: number;
  accept?: string;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

/** A body that is JSON text already and is sent unchanged. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export interface ApiClientOptions {
  url: string;
  key: string | undefined;
  /** Where the key is from, or why there is none: shown when the server refuses it. */
  keyOrigin: string;
}

/** A client for REST v2 and the job API. */
export class ApiClient {
  readonly url: string;
  readonly keyOrigin: string;
  readonly #key: string | undefined;

  constructor({ url, key, keyOrigin }: ApiClientOptions) {
    this.url = url.replace(/\/+$/, '');
    this.#key = key;
    this.keyOrigin = keyOrigin;
  }

  get hasKey(): boolean {
    return this.#key !== undefined;
  }

  get<T>(path: string, options?: SendOptions): Promise<T> {
    return this.#json('GET', path, undefined, options);
  }

  post<T>(path: string, body: unknown, options?: SendOptions): Promise<T> {
    return this.#json('POST', path, body, options);
  }

  put<T>(path: string, body: unknown): Promise<T> {
    return this.#json('PUT', path, body);
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.#json('PATCH', path, body);
  }

  /** Server-sent events, until the server ends the stream or the signal aborts it. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<ReceivedEvent> {
    try {
      const response = await this.send('GET', path, undefined, {
        timeoutMs: 0,
        accept: 'text/event-stream',
        signal,
      });
      if (!response.ok) throw await this.errorFrom(response);
      if (response.body !== null) yield* parseServerSentEvents(response.body);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** A DELETE that answers with content. */
  deleteForAnswer<T>(path: string): Promise<T> {
    return this.#json('DELETE', path);
  }

  async delete(path: string): Promise<void> {
    const response = await this.send('DELETE', path);
    if (!response.ok) throw await this.errorFrom(response);
  }

  /** The response and the list in it under `name`. */
  async list<T>(path: string, name: string): Promise<{ answer: unknown; rows: T[] }> {
    const answer = await this.get<Record<string, T[] | undefined>>(path);
    const rows = answer[name];
    if (!Array.isArray(rows))
      throw new CliError(`${this.url} answered without ${name}; is it a Berth server of this version?`);
    return { answer, rows };
  }

  /** All of a list that comes in pages. */
  async listAll<T>(path: string, name: string): Promise<T[]> {
    const found: T[] = [];
    let cursor: string | null = null;
    do {
      const query: string =
        cursor === null ? '' : `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`;
      const { answer, rows } = await this.list<T>(`${path}${query}`, name);
      found.push(...rows);
      cursor = (answer as { pagination?: { nextCursor: string | null } }).pagination?.nextCursor ?? null;
    } while (cursor !== null);
    return found;
  }

  /** Opens a two-way connection. It is paused, so that no data is lost before it is read. */
  async webSocket(path: string): Promise<WebSocket> {
    const { WebSocket: Socket } = await import('ws');
    const socket = new Socket(this.url.replace(/^http/, 'ws') + path, {
      headers: this.#authorization(),
      handshakeTimeout: REQUEST_TIMEOUT_MS,
      perMessageDeflate: false,
    });
    return new Promise((resolve, reject) => {
      socket.once('open', () => {
        socket.pause();
        resolve(socket);
      });
      socket.once('unexpected-response', (_request, answer: IncomingMessage) => {
        text(answer)
          .then((body) =>
            answer.headers['content-type']?.includes('json') === true && !body.includes(NEEDS_WEBSOCKET)
              ? this.errorFrom(
                  new Response(body, {
                    status: answer.statusCode ?? 500,
                    statusText: answer.statusMessage ?? '',
                  }),
                )
              : noUpgradeError(this.url, answer.statusCode ?? 0),
          )
          .then(reject, reject);
      });
      socket.once('error', (cause) => reject(connectionError(this.url, cause)));
    });
  }

  /** Sends a request and returns any response, including errors. Bytes and streams are sent unchanged. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    { timeoutMs = REQUEST_TIMEOUT_MS, accept = 'application/json', headers: more, signal }: SendOptions = {},
  ): Promise<Response> {
    const headers: Record<string, string> = { accept, ...this.#authorization() };
    if (body !== undefined)
      headers['content-type'] = body instanceof Uint8Array ? 'application/octet-stream' : 'application/json';
    Object.assign(headers, more);
    const signals = [
      ...(timeoutMs > 0 ? [AbortSignal.timeout(timeoutMs)] : []),
      ...(signal === undefined ? [] : [signal]),
    ];
    try {
      return await fetch(this.url + path, {
        method,
        headers,
        signal: AbortSignal.any(signals),
        ...(body === undefined ? {} : { body: bodyOf(body) }),
        ...(body instanceof Readable && { duplex: 'half' }),
      });
    } catch (cause) {
      if ((cause as Error).name === 'TimeoutError')
        throw new CliError(`Berth at ${this.url} did not answer within ${timeoutMs / 1000} s`, { cause });
      throw connectionError(this.url, cause);
    }
  }

  /** Checks the key first: fetch() would report an invalid header as a connection error. */
  #authorization(): Record<string, string> {
    if (this.#key === undefined) return {};
    if (!VALID_KEY.test(this.#key))
      throw new CliError(
        `the key from ${this.keyOrigin} has a space or another character that no key has; copy it again`,
      );
    return { authorization: `Bearer ${this.#key}` };
  }

  async #json<T>(method: string, path: string, body?: unknown, options?: SendOptions): Promise<T> {
    const response = await this.send(method, path, body, options);
    if (!response.ok) throw await this.errorFrom(response);
    try {
      return (await response.json()) as T;
    } catch (cause) {
      throw new CliError(`${this.url} does not answer as Berth does; check BERTH_URL`, { cause });
    }
  }

  /**
   * REST v2 responds with a problem object, the job API with an "error"; a proxy may respond with anything.
   */
  async errorFrom(response: Response): Promise<ApiError> {
    const problem = readProblem(await response.text());
    const findings = (problem.errors ?? []).map(describeFinding);
    const reasons = [
      ...(findings.length > 0 && problem.detail === INVALID_BODY
        ? []
        : [
            problem.detail ??
              problem.title ??
              `${this.url} answered ${response.status} ${response.statusText}`.trimEnd(),
          ]),
      ...findings,
    ];
    if (response.status === 401)
      reasons.push(
        this.#key === undefined
          ? `no key was sent: ${this.keyOrigin}; set BERTH_API_KEY or use "berth login URL"`
          : `the key is from ${this.keyOrigin}`,
      );
    if (response.status === 404 && problem.detail === NO_SUCH_ADDRESS)
      reasons.push(`the server at ${this.url} does not know this command; it may be of an earlier version`);
    // Only the last reason keeps its full stop.
    return new ApiError(
      response.status,
      escapeControlCharacters(
        reasons
          .map((reason, index) => (index < reasons.length - 1 ? reason.replace(/\.$/, '') : reason))
          .join('; '),
      ),
    );
  }
}

/** `$.size: must be at least 10` is about the field `size`. */
function describeFinding(finding: string): string {
  return finding
    .replace(/^\$: missing property '([^']+)'/, '$1 is missing')
    .replace(/^\$\.([^:]+): missing property '([^']+)'/, '$1.$2 is missing')
    .replace(/^\$\.([^:]+): /, '$1 ')
    .replace(/^\$: /, '');
}

function bodyOf(body: unknown): string | Uint8Array<ArrayBuffer> | ReadableStream {
  if (body instanceof Readable) return Readable.toWeb(body) as ReadableStream;
  if (body instanceof RawJson) return body.text;
  return body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
}

function readProblem(text: string): { title?: string; detail?: string; errors?: string[] } {
  try {
    const problem = JSON.parse(text) as {
      title?: unknown;
      detail?: unknown;
      errors?: unknown;
      error?: unknown;
    } | null;
    return {
      ...(typeof problem?.error === 'string' ? { title: problem.error } : {}),
      ...(typeof problem?.title === 'string' ? { title: problem.title } : {}),
      ...(typeof problem?.detail === 'string' ? { detail: problem.detail } : {}),
      ...(Array.isArray(problem?.errors) ? { errors: problem.errors.map(String) } : {}),
    };
  } catch {
    // Not a problem object: the status is used instead.
    return {};
  }
}
