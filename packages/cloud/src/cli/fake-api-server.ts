import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface RecordedRequest {
  method: string;
  path: string;
  authorization: string | undefined;
  body: unknown;
}

type FakeResponse = { status?: number; body?: unknown; text?: string };

/** An HTTP server on loopback that responds by `METHOD /path` and records the requests. */
export interface FakeApiServer extends AsyncDisposable {
  url: string;
  requests: RecordedRequest[];
}

export async function startFakeApiServer(answers: Record<string, FakeResponse>): Promise<FakeApiServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const { method = '', url: path = '' } = request;
      requests.push({
        method,
        path,
        authorization: request.headers.authorization,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      });
      const known = answers[`${method} ${path}`];
      const answer = known ?? {
        status: 404,
        body: { title: 'Not Found', status: 404, detail: `nothing at ${path}` },
      };
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(answer.text ?? (answer.body === undefined ? '' : JSON.stringify(answer.body)));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
