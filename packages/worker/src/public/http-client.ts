import http from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import { nextTurn } from '../pause.ts';
import { VERSION } from '../version.ts';

export interface Question {
  /** JSON text. With a body it is a POST, without one a GET. */
  body?: string;
  /** The job that it is about. */
  jobId?: string;
  /** Tells a chunk from its repeats, for a server of Berth. */
  mark?: string;
  /** Given up after this long without a byte in either direction. */
  silenceMs: number;
  /** Ends it, unless the answer has begun to come. */
  signal?: AbortSignal;
}

export interface Answer {
  status: number;
  /** Of a body that is JSON, else undefined. */
  json: unknown;
  retryAfterMs: number | undefined;
}

/** A connection that the server had closed while it was idle: nothing of the request was read. */
class StaleConnection extends Error {}

/** Plain HTTP over connections that are kept. */
export class HttpClient {
  readonly #apiKey: string;
  readonly #agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) };

  constructor(apiKey: string) {
    this.#apiKey = apiKey;
  }

  async ask(address: string, question: Question): Promise<Answer> {
    try {
      return await this.#send(address, question, true);
    } catch (error) {
      if (error instanceof StaleConnection) return await this.#send(address, question, false);
      throw error;
    }
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  #send(address: string, { body, jobId, mark, silenceMs, signal }: Question, onKeptConnection: boolean): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const url = new URL(address);
      const secure = url.protocol === 'https:';
      const agent = secure ? this.#agents['https:'] : this.#agents['http:'];
      const request = (secure ? https : http).request(url, {
        method: body === undefined ? 'GET' : 'POST',
        agent: onKeptConnection ? agent : false,
        headers: {
          Accept: 'application/json',
          'User-Agent': `berth-worker/${VERSION} (${process.platform}; ${process.arch}) node/${process.versions.node}`,
          ...(this.#apiKey === '' ? {} : { Authorization: this.#apiKey }),
          ...(jobId === undefined ? {} : { 'X-Request-ID': jobId }),
          ...(mark === undefined ? {} : { 'Berth-Chunk': mark }),
          // The public protocol sends JSON under this name, and its servers expect it.
          ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded', charset: 'utf-8' }),
        },
      });
      let answering = false;
      const abort = (): void => {
        if (!answering) request.destroy(new Error('no longer wanted'));
      };
      const fail = (error: NodeJS.ErrnoException): void => {
        signal?.removeEventListener('abort', abort);
        const stale = !answering && onKeptConnection && request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        // A name that stands for several addresses fails without a message.
        reject(stale ? new StaleConnection() : error.message === '' ? new Error(error.code, { cause: error }) : error);
      };
      signal?.addEventListener('abort', abort, { once: true });
      request.setTimeout(silenceMs, () => void giveUpUnlessHeard(request, silenceMs));
      request.on('error', fail);
      request.on('response', (response) => {
        answering = true;
        readAnswer(response).then((answer) => {
          signal?.removeEventListener('abort', abort);
          resolve(answer);
        }, fail);
      });
      request.end(body);
      if (signal?.aborted === true) abort();
    });
  }
}

/**
 * A handler may have kept the whole process busy for longer than the limit. An answer that came
 * meanwhile, perhaps with a job in it, is here and only not read yet.
 */
async function giveUpUnlessHeard(request: ClientRequest, silenceMs: number): Promise<void> {
  const heard = request.socket?.bytesRead;
  await nextTurn();
  await nextTurn();
  if (request.socket?.bytesRead === heard) request.destroy(new Error(`no answer within ${silenceMs / 1000} s`));
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  response.setEncoding('utf8');
  let text = '';
  for await (const part of response) text += part as string;
  const retryAfter = Number(response.headers['retry-after'] ?? NaN);
  return {
    status: response.statusCode ?? 0,
    json: /^application\/json\b/i.test(response.headers['content-type'] ?? '') ? parsed(text) : undefined,
    retryAfterMs: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter * 1000 : undefined,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is not JSON is no answer; the status says the rest.
    return undefined;
  }
}
