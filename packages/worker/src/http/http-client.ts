import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { errorMessage } from '../error-report.ts';
import { nextEventLoopTurn } from '../delay.ts';
import { VERSION } from '../version.ts';
import { isHeaderValue } from './header-value.ts';
import { http } from './node-http.ts';
import { maySendKey, MAX_REDIRECTS, redirectTarget } from './redirects.ts';

export interface HttpRequestOptions {
  /** JSON text. With a body the request is a POST, without one a GET. */
  body?: string;
  /** The job that the request concerns. */
  jobId?: string;
  /** Idempotency key of a chunk, understood by Berth servers. */
  chunkId?: string;
  /** The request fails after this long without a byte in either direction. */
  idleTimeoutMs: number;
  /** Aborts the request. A response that has started gets a short time to complete. */
  signal?: AbortSignal;
  /** Aborts it too, unless the response has started: that is then read, however long it takes. */
  signalBeforeResponse?: AbortSignal;
}

export interface HttpResponse {
  status: number;
  /** The parsed body where it is JSON, else undefined. */
  json: unknown;
  retryAfterMs: number | undefined;
}

/** The response to one request, and the address that it redirects to. */
interface HttpReply {
  response: HttpResponse;
  redirect: string | undefined;
}

/** The request could not be built. A retry would fail the same way. */
export class InvalidRequestError extends Error {}

/** The server had closed the idle connection: it read nothing of the request. */
class StaleConnectionError extends Error {}

/** Plain HTTP over kept-alive connections. */
export class HttpClient {
  readonly #apiKey: string;
  readonly #begunAnswerMs: number;
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true }),
    'https:': new https.Agent({ keepAlive: true }),
  };

  constructor(apiKey: string, begunAnswerMs: number) {
    this.#apiKey = apiKey;
    this.#begunAnswerMs = begunAnswerMs;
  }

  /**
   * Where there are too many redirects, or one that cannot be followed, the redirect response is returned.
   */
  async request(address: string, question: HttpRequestOptions): Promise<HttpResponse> {
    let [to, apiKey] = [address, this.#apiKey];
    for (let redirects = 0; ; redirects += 1) {
      const { response, redirect } = await this.#sendOnGoodConnection(to, question, apiKey);
      if (redirect === undefined || redirects === MAX_REDIRECTS) return response;
      if (!maySendKey(to, redirect)) apiKey = '';
      to = redirect;
    }
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #sendOnGoodConnection(
    address: string,
    question: HttpRequestOptions,
    apiKey: string,
  ): Promise<HttpReply> {
    try {
      return await this.#send(address, question, apiKey, true);
    } catch (error) {
      if (error instanceof StaleConnectionError) return await this.#send(address, question, apiKey, false);
      throw error;
    }
  }

  #send(
    address: string,
    question: HttpRequestOptions,
    apiKey: string,
    onKeptConnection: boolean,
  ): Promise<HttpReply> {
    return new Promise((resolve, reject) => {
      const { body, idleTimeoutMs, signal, signalBeforeResponse } = question;
      const request = this.#make(address, question, apiKey, onKeptConnection);
      let answering = false;
      let settled = false;
      let lastMoment: NodeJS.Timeout | undefined;
      const settle = (): void => {
        settled = true;
        clearTimeout(lastMoment);
        request.socket?.off('timeout', giveUpWithoutResponse);
        signal?.removeEventListener('abort', end);
        signalBeforeResponse?.removeEventListener('abort', endUnlessBegun);
      };
      const fail = (error: NodeJS.ErrnoException): void => {
        settle();
        const stale =
          !answering &&
          onKeptConnection &&
          request.reusedSocket &&
          (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        // The error of a name with several addresses has no message.
        reject(
          stale
            ? new StaleConnectionError()
            : error.message === ''
              ? new Error(error.code, { cause: error })
              : error,
        );
      };
      const giveUp = (why: string): void => {
        if (settled) return;
        fail(new Error(why));
        request.destroy();
      };
      const giveUpWithoutResponse = (): void =>
        void receivesData(request).then((heard) =>
          heard ? undefined : giveUp(`no answer within ${idleTimeoutMs / 1000} s`),
        );
      const endUnlessBegun = (): void => {
        if (!answering) giveUp('no longer wanted');
      };
      const end = (): void => {
        if (answering)
          lastMoment = setTimeout(
            () =>
              void untilAllRead(request).then(() =>
                giveUp('no longer wanted, and the answer did not come whole'),
              ),
            this.#begunAnswerMs,
          );
        else giveUp('no longer wanted');
      };
      signal?.addEventListener('abort', end, { once: true });
      signalBeforeResponse?.addEventListener('abort', endUnlessBegun, { once: true });
      request.setTimeout(idleTimeoutMs);
      // The request reports only its first timeout. After a false alarm there may be a real one.
      request.on('socket', (socket) => socket.on('timeout', giveUpWithoutResponse));
      request.on('error', fail);
      request.on('response', (response) => {
        answering = true;
        readResponse(response).then((answer) => {
          settle();
          resolve({
            response: answer,
            redirect: redirectTarget(
              address,
              body !== undefined,
              response.statusCode,
              response.headers.location,
            ),
          });
        }, fail);
      });
      request.end(body);
      if (signal?.aborted === true || signalBeforeResponse?.aborted === true) endUnlessBegun();
    });
  }

  #make(
    address: string,
    question: HttpRequestOptions,
    apiKey: string,
    onKeptConnection: boolean,
  ): ClientRequest {
    try {
      const url = new URL(address);
      const secure = url.protocol === 'https:';
      const agent = secure ? this.#agents['https:'] : this.#agents['http:'];
      return (secure ? https : http).request(url, {
        method: question.body === undefined ? 'GET' : 'POST',
        agent: onKeptConnection ? agent : false,
        headers: headersOf(question, apiKey),
      });
    } catch (error) {
      throw new InvalidRequestError(errorMessage(error), { cause: error });
    }
  }
}

/** An id that is not valid in a header is left out: the one in the address counts. */
function headersOf({ body, jobId, chunkId }: HttpRequestOptions, apiKey: string): OutgoingHttpHeaders {
  return {
    Accept: 'application/json',
    'User-Agent': `berth-worker/${VERSION} (${process.platform}; ${process.arch}) node/${process.versions.node}`,
    ...(apiKey === '' ? {} : { Authorization: apiKey }),
    ...(jobId === undefined || !isHeaderValue(jobId) ? {} : { 'X-Request-ID': jobId }),
    ...(chunkId === undefined || !isHeaderValue(chunkId) ? {} : { 'Berth-Chunk': chunkId }),
    // The public protocol sends JSON under this content type, and its servers expect it.
    ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded', charset: 'utf-8' }),
  };
}

/**
 * A handler may have blocked the event loop for longer than a timeout. A response that arrived meanwhile,
 * perhaps with a job in it, is still unread.
 */
async function receivesData(request: ClientRequest): Promise<boolean> {
  const heard = request.socket?.bytesRead;
  await nextEventLoopTurn();
  await nextEventLoopTurn();
  return request.socket?.bytesRead !== heard;
}

/** Resolves when there is no more unread data. */
async function untilAllRead(request: ClientRequest): Promise<void> {
  let more = true;
  while (more) more = await receivesData(request);
}

async function readResponse(response: IncomingMessage): Promise<HttpResponse> {
  response.setEncoding('utf8');
  let text = '';
  for await (const part of response) text += part as string;
  const retryAfter = Number(response.headers['retry-after'] ?? NaN);
  return {
    status: response.statusCode ?? 0,
    json: /^application\/json\b/i.test(response.headers['content-type'] ?? '') ? parseJson(text) : undefined,
    retryAfterMs: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter * 1000 : undefined,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A body that is not JSON is ignored; the status is enough.
    return undefined;
  }
}
