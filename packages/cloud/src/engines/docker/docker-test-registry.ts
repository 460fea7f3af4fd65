import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const LOGIN = { username: 'reader', password: 'open sesame' };
const TOKEN = 'a-token-for-a-while';

/**
 * A registry with one image under the tags v1 to v8, which requires credentials. Docker accepts it on the
 * loopback without TLS.
 */
export class TestRegistry {
  readonly login = LOGIN;
  /** Requests for this tag are never answered. */
  readonly silentTag = 'never';
  /** The number of requests. */
  requests = 0;
  readonly #server: Server;
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifest: Buffer;

  readonly #authScheme: 'basic' | 'bearer';

  /** Basic authentication, or a bearer token that is issued for the credentials. */
  constructor(layer: Buffer, authScheme: 'basic' | 'bearer' = 'basic') {
    this.#authScheme = authScheme;
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config: { Env: ['PATH=/bin'], Cmd: ['sh', '-c', 'echo from the registry; sleep 600'] },
        rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
      }),
    );
    for (const blob of [layer, config]) this.#blobs.set(digestOf(blob), blob);
    this.#manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: {
          mediaType: 'application/vnd.docker.container.image.v1+json',
          size: config.length,
          digest: digestOf(config),
        },
        layers: [
          {
            mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
            size: layer.length,
            digest: digestOf(layer),
          },
        ],
      }),
    );
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  async open(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  image(tag: string): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}/team/image:${tag}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #challenge(): string {
    return this.#authScheme === 'basic'
      ? 'Basic realm="test"'
      : 'Bearer ' +
          `realm="http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/token",service="test",scope="repository:team/image:pull"`;
  }

  #answer({ url = '', headers, method }: IncomingMessage, response: ServerResponse): void {
    this.requests += 1;
    const basic = `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}`;
    const refuse = (): void =>
      void response
        .writeHead(401, { 'www-authenticate': this.#challenge() })
        .end(errorOf('UNAUTHORIZED', 'authentication required'));
    if (this.#authScheme === 'bearer' && url.startsWith('/token'))
      return headers.authorization === basic
        ? void response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ token: TOKEN, access_token: TOKEN }))
        : refuse();
    if (headers.authorization !== (this.#authScheme === 'basic' ? basic : `Bearer ${TOKEN}`)) return refuse();
    const [, kind, name = ''] = /^\/v2\/team\/image\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    if (name === this.silentTag) return;
    const found =
      kind === 'blobs'
        ? this.#blobs.get(name)
        : /^v[1-8]$/.test(name) || name === digestOf(this.#manifest)
          ? this.#manifest
          : undefined;
    if (url === '/v2/') response.end('{}');
    else if (found === undefined)
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end(errorOf('MANIFEST_UNKNOWN', 'manifest unknown'));
    else
      response
        .writeHead(200, {
          'content-type': kind === 'blobs' ? 'application/octet-stream' : MANIFEST,
          'content-length': found.length,
          'docker-content-digest': digestOf(found),
        })
        .end(method === 'HEAD' ? undefined : found);
  }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function errorOf(code: string, message: string): string {
  return JSON.stringify({ errors: [{ code, message }] });
}
