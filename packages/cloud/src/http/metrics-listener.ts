import { once } from 'node:events';
import { createServer } from '../support/node-http.ts';
import type { Server, ServerResponse } from 'node:http';
import type { MetricsText } from './health.routes.ts';
import { toListenError } from './listen-errors.ts';
import { listeningOrigin } from './server-origin.ts';

const MAX_CONNECTIONS = 100;

/** Serves /metrics at an address of its own, without a key: who reaches that address may read them. */
export class MetricsListener {
  readonly #address: string;
  readonly #server: Server;

  /** `address` is `host:port`; an IPv6 host is in brackets. */
  constructor(address: string, metrics: MetricsText) {
    this.#address = address;
    this.#server = createServer((request, response) => {
      const path = request.url?.split('?', 1)[0];
      if (path !== '/metrics') answer(response, 404, 'text/plain', 'only /metrics is served here\n');
      else if (request.method !== 'GET' && request.method !== 'HEAD')
        answer(response.setHeader('allow', 'GET'), 405, 'text/plain', 'only GET is allowed here\n');
      else
        metrics.read().then(
          (text) => answer(response, 200, metrics.contentType, text),
          () => answer(response, 500, 'text/plain', 'the metrics could not be collected\n'),
        );
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /** Where Prometheus finds them. */
  get url(): string {
    return `${listeningOrigin(this.#server)}/metrics`;
  }

  async listen(): Promise<void> {
    const colon = this.#address.lastIndexOf(':');
    const host = this.#address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
    const port = Number(this.#address.slice(colon + 1));
    this.#server.listen({ host, port });
    // `once` rejects if an error comes first.
    await once(this.#server, 'listening').catch((cause: unknown) => {
      throw toListenError(cause, host, port, 'metrics.listen (BERTH_METRICS_LISTEN)');
    });
  }

  async close(): Promise<void> {
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }

  closeAllConnections(): void {
    this.#server.closeAllConnections();
  }
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
