import type { IncomingMessage, RequestOptions } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { json, text } from 'node:stream/consumers';
import { Agent, request as sendRequest } from '../../../support/node-http.ts';
import { BerthError } from '../../../support/errors.ts';
import { CAPACITY_HEADER, type ErrorAnswer } from './volume-protocol.ts';

/** Where a volume server answers. */
export interface VolumeServerAddress {
  host: string;
  port: number;
  token: string;
}

export interface VolumeServerClientOptions {
  /** Starts one where none runs. */
  connect(): Promise<VolumeServerAddress>;
  /** Called when nothing answers at the address. */
  onUnreachable(): void;
  /** The size of the volume in bytes. */
  capacity: number;
}

interface Sending {
  method: string;
  path: string;
  headers?: Record<string, string | number>;
  body?: AsyncIterable<Uint8Array> | string;
}

const MAX_ATTEMPTS = 3;
/** A volume server that takes longer to begin its answer is taken for gone. */
const ANSWER_TIMEOUT_MS = 300_000;
const NOT_REACHED = new Set(['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ETIMEDOUT', 'EPIPE']);
const agent = new Agent({ keepAlive: true });

/** Requests to the volume server of one volume. */
export class VolumeServerClient {
  readonly #options: VolumeServerClientOptions;

  constructor(options: VolumeServerClientOptions) {
    this.#options = options;
  }

  /** A call that may be repeated: a volume server that just ended is started again. */
  async call<T>(name: string, parameters: unknown): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const body = JSON.stringify(parameters ?? null);
        return (await json(await this.send({ method: 'POST', path: `/call/${name}`, body }))) as T;
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isNotReached(error)) throw toUnavailable(error);
      }
    }
  }

  /** A call whose body can be sent only once. */
  async upload<T>(
    method: 'POST' | 'PUT',
    path: string,
    bytes: AsyncIterable<Uint8Array>,
    length: number,
  ): Promise<T> {
    try {
      const headers = { 'content-length': length };
      const body = ofLength(bytes, length);
      return (await json(await this.send({ method, path, headers, body }))) as T;
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  /** The content begins to be read with the first read of the stream. */
  download(path: string): Readable {
    return Readable.from(this.#download(path), { objectMode: false });
  }

  async *#download(path: string): AsyncGenerator<Buffer> {
    yield* (await this.send({ method: 'GET', path })) as AsyncIterable<Buffer>;
  }

  async send({ method, path, headers = {}, body }: Sending): Promise<IncomingMessage> {
    const { host, port, token } = await this.#options.connect();
    try {
      const response = await this.#exchange(
        { host, port, method, path, agent, timeout: ANSWER_TIMEOUT_MS },
        { authorization: `Bearer ${token}`, [CAPACITY_HEADER]: String(this.#options.capacity), ...headers },
        body,
      );
      if (response.statusCode === 200) return response;
      throw toError(await text(response));
    } catch (error) {
      if (isNotReached(error)) this.#options.onUnreachable();
      throw error;
    }
  }

  async #exchange(
    target: RequestOptions,
    headers: Record<string, string | number>,
    body: Sending['body'],
  ): Promise<IncomingMessage> {
    const request = sendRequest({ ...target, headers });
    request.on('timeout', () => request.destroy(new Error('the volume server does not answer')));
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).once('error', reject);
    });
    // It may refuse before the whole body was sent.
    answered.catch(() => undefined);
    if (body === undefined || typeof body === 'string') request.end(body);
    else
      await Promise.race([
        pipeline(body, request).catch(async (error: unknown) => {
          request.destroy();
          throw error;
        }),
        answered,
      ]);
    return answered;
  }
}

/** The volume server would wait for the rest of a body that is too short. */
async function* ofLength(bytes: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const chunk of bytes) {
    total += chunk.length;
    if (total > length)
      throw new BerthError('malformed', `the body is longer than the ${length} bytes that were announced`);
    yield chunk;
  }
  if (total !== length) throw new BerthError('malformed', `the body ended after ${total} of ${length} bytes`);
}

function isNotReached(error: unknown): boolean {
  return NOT_REACHED.has((error as NodeJS.ErrnoException).code ?? '');
}

function toUnavailable(error: unknown): unknown {
  return isNotReached(error)
    ? new BerthError('unavailable', 'the files of this network volume are not reachable now; try again', {
        cause: error,
      })
    : error;
}

function toError(answer: string): Error {
  let parsed: ErrorAnswer;
  try {
    parsed = JSON.parse(answer) as ErrorAnswer;
  } catch {
    return new BerthError('unavailable', 'the volume server sent an invalid response');
  }
  const { code, errno, message } = parsed;
  if (code !== undefined) return new BerthError(code, message);
  return Object.assign(new Error(message), { code: errno });
}
