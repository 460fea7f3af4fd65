import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from '../../support/node-http.ts';

const CHALLENGE_PATH = '/.well-known/acme-challenge/';
const HOST = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?$/;
const HTTPS_PORT = 443;

export interface HttpsRedirectsDeps {
  /** The port at which clients reach HTTPS. */
  httpsPort(): number;
  /** The answer to a challenge of ACME, by its token. */
  challengeAnswer(token: string): Promise<string | undefined>;
}

/** Redirects HTTP to HTTPS at the same name, and answers the challenges of ACME, which come over HTTP. */
export function createHttpsRedirects(deps: HttpsRedirectsDeps): Server {
  return createServer({ keepAliveTimeout: 5_000, maxHeaderSize: 160 * 1024 }, (request, response) => {
    void answer(request, response, deps);
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { httpsPort, challengeAnswer }: HttpsRedirectsDeps,
): Promise<void> {
  const { url = '/', headers } = request;
  request.resume();
  if (url.startsWith(CHALLENGE_PATH)) {
    const text = await challengeAnswer(url.slice(CHALLENGE_PATH.length)).catch(() => undefined);
    if (text === undefined) return reply(response, 404, 'no such challenge\n');
    return reply(response, 200, text);
  }
  const [, name] = HOST.exec(headers.host ?? '') ?? [];
  if (name === undefined || !url.startsWith('/'))
    return reply(response, 400, 'this server speaks HTTPS; use https:// in its address\n');
  const port = httpsPort();
  const origin = `https://${name}${port === HTTPS_PORT ? '' : `:${port}`}`;
  // 308, so that clients repeat the method and the body.
  response.setHeader('location', `${origin}${url}`);
  reply(response, 308, `this server speaks HTTPS: ${origin}${url}\n`);
}

function reply(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      connection: 'close',
    })
    .end(text);
}
