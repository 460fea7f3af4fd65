import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type WebSocket from 'ws';
import { Agent as HttpAgent, request as requestHttp, STATUS_CODES } from '../../../support/node-http.ts';
import type { ClusterAccess, ClusterCredentials } from './cluster-access.ts';
import { KubernetesApiError } from './kubernetes.errors.ts';
import { RequestPace } from './request-pace.ts';
import { answerOf, SharedConnections } from './shared-connections.ts';

/** No plain request takes this long unless the API server hangs. */
const REQUEST_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 15_000;
/** Requests at once; watches and commands have connections of their own, and logs share others. */
const MAX_CONNECTIONS = 16;
/** Of one server to one cluster, whatever is to be started: the API server is there for others too. */
const PACE = { perSecond: 140, burst: 300 };
/** Beside it: thousands of logs that are followed again after a break do not delay starts. */
const SHARED_STREAM_PACE = { perSecond: 60, burst: 100 };

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface RequestOptions {
  query?: Query;
  body?: unknown;
  contentType?: string;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** The beginning of an answer. Its body is read as it comes, and throws if it breaks off. */
interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: AsyncIterable<Buffer>;
}

/**
 * The dozen calls of the Kubernetes API that Berth needs. ARCHITECTURE.md says why this is not the official
 * client. Credentials that were refused are read again once.
 */
export class KubernetesClient {
  readonly #openAccess: () => Promise<ClusterAccess>;
  #credentials: ClusterCredentials | undefined;
  #agent: HttpAgent | undefined;
  #streamAgent: HttpAgent | undefined;
  /** Undefined where the API server does not speak HTTP/2. */
  #shared: SharedConnections | undefined;
  #requests = 0;
  readonly #pace = new RequestPace(PACE);
  readonly #sharedStreamPace = new RequestPace(SHARED_STREAM_PACE);

  constructor(openAccess: () => Promise<ClusterAccess>) {
    this.#openAccess = openAccess;
  }

  /** Number of requests sent, for metrics. */
  get requests(): number {
    return this.#requests;
  }

  /** That of its credentials, where they name one. */
  async namespace(): Promise<string | undefined> {
    return (await this.#openAccess()).namespace;
  }

  get<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<T> {
    return this.request<T>('GET', path, { ...options, ...(query !== undefined && { query }) });
  }

  create<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.request<T>('POST', path, { body, ...(signal !== undefined && { signal }) });
  }

  merge<T>(path: string, body: unknown): Promise<T> {
    return this.request<T>('PATCH', path, { body, contentType: 'application/merge-patch+json' });
  }

  /** Entries of lists are added, as the API server knows what makes two entries the same. */
  mergeLists<T>(path: string, body: unknown): Promise<T> {
    return this.request<T>('PATCH', path, { body, contentType: 'application/strategic-merge-patch+json' });
  }

  delete<T>(path: string, body: unknown = {}, query: Query = {}): Promise<T> {
    return this.request<T>('DELETE', path, {
      body: { kind: 'DeleteOptions', apiVersion: 'v1', ...(body as object) },
      query,
    });
  }

  async request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const { headers, body } = await this.#withCredentials(() => this.#send(method, path, options, false));
    const text = await readText(body);
    if ((headers['content-type'] ?? '').includes('json')) return JSON.parse(text) as T;
    return text as T;
  }

  /** A body that is read as it comes. Its connection is its own; the signal ends it. */
  async stream(path: string, query: Query, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    return (await this.#withCredentials(() => this.#send('GET', path, { query, signal }, true))).body;
  }

  /** The same, one of very many: they share connections, where the API server can do that. */
  async sharedStream(path: string, query: Query, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const answer = await this.#withCredentials(
      async () =>
        (await this.#sendShared(path, query, signal)) ?? this.#send('GET', path, { query, signal }, true),
    );
    return answer.body;
  }

  /**
   * A WebSocket to a subresource such as exec. `onOpen` is called before its first message: the promise may
   * resolve after that.
   */
  async connect(
    path: string,
    query: Query,
    protocols: readonly string[],
    onOpen?: (socket: WebSocket) => void,
  ): Promise<WebSocket> {
    const { default: Socket } = await import('ws');
    const access = await this.#openAccess();
    const { authorization, tls } = await access.credentials();
    const url = urlOf(access.server, path, query);
    url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
    this.#requests += 1;
    const socket = new Socket(url, [...protocols], {
      ...withoutUndefined(tls),
      headers: authorization === undefined ? {} : { authorization },
      handshakeTimeout: CONNECT_TIMEOUT_MS,
      perMessageDeflate: false,
    });
    return new Promise((resolve, reject) => {
      socket.once('open', () => {
        socket.off('error', reject);
        onOpen?.(socket);
        resolve(socket);
      });
      socket.once('error', reject);
      socket.once('unexpected-response', (_, response) => {
        // The answer says why; that the socket did not open adds nothing.
        socket.off('error', reject).on('error', () => undefined);
        void toApiError(toAnswer(response))
          .then(reject, reject)
          .finally(() => socket.terminate());
      });
    });
  }

  close(): void {
    this.#agent?.destroy();
    this.#streamAgent?.destroy();
    this.#shared?.destroy();
  }

  async #withCredentials(send: () => Promise<Answer>): Promise<Answer> {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof KubernetesApiError) || error.status !== 401) throw error;
      (await this.#openAccess()).forgetCredentials();
      return send();
    }
  }

  /** Undefined if the API server does not speak HTTP/2. */
  async #sendShared(path: string, query: Query, signal: AbortSignal): Promise<Answer | undefined> {
    const access = await this.#openAccess();
    const credentials = await access.credentials();
    const url = urlOf(access.server, path, query);
    this.#connectWith(credentials, url);
    const shared = this.#shared;
    if (shared === undefined) return undefined;
    await waitForPace(this.#sharedStreamPace, signal);
    const { authorization } = credentials;
    const stream = await shared.request(
      {
        ':path': url.pathname + url.search,
        accept: 'application/json',
        ...(authorization !== undefined && { authorization }),
      },
      signal,
    );
    if (stream === undefined) {
      if (this.#shared === shared) this.#shared = undefined;
      return undefined;
    }
    this.#requests += 1;
    const answer = await answerOf(stream, CONNECT_TIMEOUT_MS);
    if (answer.status >= 400) throw await toApiError(answer);
    return answer;
  }

  async #send(
    method: string,
    path: string,
    {
      query = {},
      body,
      contentType = 'application/json',
      timeoutMs = REQUEST_TIMEOUT_MS,
      signal,
    }: RequestOptions,
    isStream: boolean,
  ): Promise<Answer> {
    await waitForPace(this.#pace, signal);
    const access = await this.#openAccess();
    const credentials = await access.credentials();
    const url = urlOf(access.server, path, query);
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const send = url.protocol === 'http:' ? requestHttp : requestHttps;
    this.#connectWith(credentials, url);
    this.#requests += 1;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = send(url, {
        method,
        agent: isStream ? this.#streamAgent : this.#agent,
        ...(signal !== undefined && { signal }),
        headers: {
          accept: 'application/json',
          ...(credentials.authorization !== undefined && { authorization: credentials.authorization }),
          ...(payload !== undefined && { 'content-type': contentType, 'content-length': payload.length }),
        },
      });
      const timer = setTimeout(
        () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
        isStream ? CONNECT_TIMEOUT_MS : timeoutMs,
      );
      request.on('response', (answer) => {
        // A stream has no limit once it has begun; everything else is read within its time.
        if (isStream) clearTimeout(timer);
        else answer.once('close', () => clearTimeout(timer));
        resolve(answer);
      });
      request.on('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      request.end(payload);
    });
    const answer = toAnswer(response);
    if (answer.status >= 400) throw await toApiError(answer);
    return answer;
  }

  /** Connections are kept and used again; new credentials need new ones. */
  #connectWith(credentials: ClusterCredentials, server: URL): void {
    // A token that was read again comes with the same certificates.
    if (this.#credentials !== undefined && isDeepStrictEqual(this.#credentials.tls, credentials.tls)) return;
    this.#credentials = credentials;
    const isPlain = server.protocol === 'http:';
    const Agent = isPlain ? HttpAgent : HttpsAgent;
    const tls = withoutUndefined(credentials.tls);
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, ...tls });
    this.#streamAgent = new Agent({ keepAlive: false, ...tls });
    this.#shared?.retire();
    this.#shared = isPlain ? undefined : new SharedConnections(server, tls);
  }
}

async function waitForPace(pace: RequestPace, signal: AbortSignal | undefined): Promise<void> {
  const wait = pace.waitMs(performance.now());
  if (wait > 0) await pause(wait, undefined, signal && { signal });
  signal?.throwIfAborted();
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T;
}

function toAnswer(response: IncomingMessage): Answer {
  return { status: response.statusCode ?? 500, headers: response.headers, body: response };
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

async function toApiError({ status, headers, body }: Answer): Promise<KubernetesApiError> {
  const text = await readText(body).catch(() => '');
  const retryAfter = Number(headers['retry-after']);
  let message = text.slice(0, 1000);
  let reason = '';
  try {
    const parsed = JSON.parse(text) as { message?: string; reason?: string };
    message = parsed.message ?? message;
    reason = parsed.reason ?? '';
  } catch {
    // Some refusals are plain text.
  }
  return new KubernetesApiError(
    status,
    reason,
    message || (STATUS_CODES[status] ?? 'no reason given'),
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter * 1000 : undefined,
  );
}

function urlOf(server: string, path: string, query: Query): URL {
  const url = new URL(server.replace(/\/$/, '') + path);
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      if (one !== undefined) url.searchParams.append(name, String(one));
  return url;
}
