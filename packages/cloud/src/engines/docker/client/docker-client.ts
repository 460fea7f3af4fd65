import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Agent as HttpAgent, request as requestHttp } from '../../../support/node-http.ts';
import { parseDaemonAddress, readDaemonCertificates } from './daemon-address.ts';
import { readApiError } from './docker.errors.ts';
import { connectOverSsh } from './ssh-connection.ts';

/** No request takes this long unless the daemon hangs. */
const REQUEST_TIMEOUT_MS = 120_000;
/** A connection without a request is closed after this time. */
const IDLE_CONNECTION_MS = 5_000;

/** Objects are sent as JSON, lists as one parameter for each entry. */
export type Query = Readonly<Record<string, string | number | boolean | object | undefined>>;

export interface DockerRequest {
  query?: Query;
  /** Sent as JSON. */
  body?: object;
  /** Sent as it comes: a tar archive, wherever the API takes one. */
  upload?: Readable;
  headers?: Readonly<Record<string, string>>;
  /** Ends the request, or the stream that it opened. */
  signal?: AbortSignal | undefined;
}

interface SendOptions extends DockerRequest {
  /** On a connection that is kept for the next request; else on its own. */
  keep?: boolean;
  timeoutMs?: number;
}

const PLAIN = { keep: true, timeoutMs: REQUEST_TIMEOUT_MS };

/**
 * The API of a Docker daemon, or of Podman with the same API. ARCHITECTURE.md says why this is not a library.
 * Paths have no version: the daemon answers with the newest it has.
 */
export class DockerClient {
  readonly #target: RequestOptions;
  readonly #request: typeof requestHttp = requestHttp;
  readonly #agent: Agent | undefined;

  /** `host` has the format of DOCKER_HOST. */
  constructor(host: string, env: NodeJS.ProcessEnv = process.env) {
    const address = parseDaemonAddress(host, env);
    const kept = { keepAlive: true, scheduling: 'lifo', timeout: IDLE_CONNECTION_MS } as const;
    if (address.kind === 'ssh') {
      // Each connection is a program of its own; none is kept.
      this.#target = { host: address.host, createConnection: () => connectOverSsh(address) };
    } else if (address.kind === 'socket') {
      this.#target = { socketPath: address.socketPath };
      this.#agent = new HttpAgent(kept);
    } else if (!address.tls) {
      this.#target = { host: address.host, port: address.port };
      this.#agent = new HttpAgent(kept);
    } else {
      const https = process.getBuiltinModule('node:https');
      this.#target = { host: address.host, port: address.port, ...readDaemonCertificates(env) };
      this.#request = https.request;
      this.#agent = new https.Agent(kept);
    }
  }

  get<T>(path: string, query: Query = {}, request: Omit<DockerRequest, 'query'> = {}): Promise<T> {
    return this.#json<T>('GET', path, { ...PLAIN, ...request, query });
  }

  post<T = unknown>(path: string, request: DockerRequest = {}): Promise<T> {
    return this.#json<T>('POST', path, { ...PLAIN, ...request });
  }

  /** Like post(), for a request that is answered when something has happened. */
  wait<T = unknown>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this.#json<T>('POST', path, { query, signal });
  }

  delete(path: string, query: Query = {}): Promise<unknown> {
    return this.#json('DELETE', path, { ...PLAIN, query });
  }

  /** The headers of an answer without a body. */
  async head(path: string, query: Query = {}): Promise<IncomingHttpHeaders> {
    const response = await this.#send('HEAD', path, { ...PLAIN, query });
    response.resume();
    return response.headers;
  }

  /** An answer whose body is read as it comes, however long that takes. */
  stream(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    request: DockerRequest = {},
  ): Promise<IncomingMessage> {
    return this.#send(method, path, request);
  }

  /** Turns the connection into a stream of bytes in both directions. */
  async upgrade(path: string, body: object): Promise<Duplex> {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    const headers = { connection: 'Upgrade', upgrade: 'tcp' };
    const request = this.#open('POST', path, { body, headers, timeoutMs: REQUEST_TIMEOUT_MS });
    request.on('upgrade', (_, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on('response', (response) => void readApiError(response).then(reject));
    request.on('error', reject);
    return promise;
  }

  async ping(signal: AbortSignal): Promise<void> {
    (await this.stream('GET', '/_ping', { signal })).resume();
  }

  /** Closes the connections that no request uses. */
  close(): void {
    this.#agent?.destroy();
  }

  async #json<T>(method: string, path: string, options: SendOptions): Promise<T> {
    const response = await this.#send(method, path, options);
    const answer = await text(response);
    return (answer.trim() === '' ? undefined : JSON.parse(answer)) as T;
  }

  async #send(method: string, path: string, options: SendOptions): Promise<IncomingMessage> {
    const request = this.#open(method, path, options);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve);
      request.on('error', reject);
    });
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    const error = await readApiError(response);
    // The daemon may answer before it has the whole upload.
    options.upload?.unpipe(request);
    if (options.keep !== true) request.destroy();
    throw error;
  }

  #open(method: string, path: string, options: SendOptions): ClientRequest {
    const { query, body, upload, headers, signal, keep = false, timeoutMs } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const request = this.#request({
      ...this.#target,
      // Not used where the target makes its own connection.
      ...(this.#agent !== undefined && { agent: keep ? this.#agent : false }),
      method,
      path: `${path}${queryString(query)}`,
      ...(signal !== undefined && { signal }),
      headers: {
        ...headers,
        ...(payload !== undefined && {
          'content-type': 'application/json',
          'content-length': payload.length,
        }),
        ...(upload !== undefined && { 'content-type': 'application/x-tar' }),
      },
    });
    if (timeoutMs !== undefined) limitTime(request, timeoutMs);
    if (upload === undefined) request.end(payload);
    else upload.once('error', (error) => request.destroy(error)).pipe(request);
    return request;
  }
}

/** Until the whole answer is there. */
function limitTime(request: ClientRequest, milliseconds: number): void {
  const timer = setTimeout(
    () => request.destroy(new Error(`no answer within ${milliseconds / 1000} s`)),
    milliseconds,
  );
  const stop = (): void => clearTimeout(timer);
  request.on('close', stop).on('upgrade', stop);
}

function queryString(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value])
      if (one !== undefined)
        parameters.append(name, typeof one === 'object' ? JSON.stringify(one) : String(one));
  return parameters.size === 0 ? '' : `?${parameters}`;
}
