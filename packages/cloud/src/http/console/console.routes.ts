import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator } from '../../auth/authenticator.ts';
import { permits, scopeLevelOf } from '../../auth/scopes.ts';
import type { Sessions } from '../../auth/sessions.ts';
import type { ApiKey } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { ConsoleFiles } from './console-files.ts';
import {
  CONSOLE_HEADER,
  endedSessionCookie,
  isOwnOrigin,
  sessionCookie,
  sessionTokenOf,
} from './session-cookie.ts';

export interface ConsoleDeps {
  /** The folder with the built console. */
  files: string;
  authenticator: Authenticator;
  sessions: Sessions;
  origin(): string;
}

const LOGIN_PATH = '/login';
const ASSETS_PATH = '/assets';
const MAX_KEY_LENGTH = 512;
const ONE_YEAR_SECONDS = 31_536_000;
/** Addresses of other interfaces: what is unknown there is answered in their own way. */
const OTHER_INTERFACES = /^\/(?:v1|v2|graphql|s3|proxy|flash|assets|healthz|readyz|metrics)(?:[/?]|$)/;

/**
 * No inline script, and nothing from another host. The styles are set by scripts of charts, terminals and
 * editors.
 */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: " +
    "blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors " +
    "'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

/** What the pages ask first. The browser asks for it while the scripts are still on their way. */
const FIRST_READS = ['/v2/session'];
const FIRST_READS_OF_OVERVIEW = [...FIRST_READS, '/v2/account/overview'];

const NOT_BUILT = `<!doctype html><meta charset="utf-8"><title>Berth</title>
<h1>Berth runs, but its console was not built</h1>
<p>In a clone, <code>npm run build:console</code> builds it; <code>npm start</code> does so by itself.
The API works without it.</p>`;

/** The console: one page for every address of it, its files, and signing in and out. */
export class ConsoleRoutes {
  readonly #deps: ConsoleDeps;
  readonly #files: ConsoleFiles;

  constructor(deps: ConsoleDeps) {
    this.#deps = deps;
    this.#files = new ConsoleFiles(deps.files);
  }

  register(app: FastifyInstance): void {
    app.get(`${ASSETS_PATH}/:name`, async (request, reply) => this.#sendAsset(request, reply));
    app.post(LOGIN_PATH, async (request, reply) => this.#signIn(request, reply));
    app.post('/logout', async (request, reply) => this.#signOut(request, reply));
  }

  /** Whether a request that no other interface knows is for a page of the console. */
  handles({ method, url, headers }: FastifyRequest): boolean {
    return (
      (method === 'GET' || method === 'HEAD') &&
      headers.accept?.includes('text/html') === true &&
      !OTHER_INTERFACES.test(url)
    );
  }

  /** The page for signed-in users; others are redirected to sign in. */
  async sendPage(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const path = request.url.split('?')[0] ?? '/';
    reply.headers({ ...SECURITY_HEADERS, 'cache-control': 'no-cache', vary: 'Accept, Cookie' });
    const page = this.#files.page();
    if (page === undefined) return reply.code(503).type('text/html; charset=utf-8').send(NOT_BUILT);
    if (path !== LOGIN_PATH && !(await this.#isSignedIn(request)))
      return reply.redirect(
        path === '/' ? LOGIN_PATH : `${LOGIN_PATH}?next=${encodeURIComponent(request.url)}`,
        302,
      );
    if (path !== LOGIN_PATH)
      void reply.header('link', preload(path === '/' ? FIRST_READS_OF_OVERVIEW : FIRST_READS));
    if (request.headers['if-none-match'] === page.tag) return reply.code(304).send();
    return reply.header('etag', page.tag).type('text/html; charset=utf-8').send(page.body);
  }

  async #isSignedIn({ raw }: FastifyRequest): Promise<boolean> {
    const token = sessionTokenOf(raw);
    if (token === undefined) return false;
    try {
      await this.#deps.authenticator.authenticate(token);
      return true;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unauthenticated') return false;
      throw error;
    }
  }

  #sendAsset(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { name } = request.params as { name: string };
    const file = this.#files.asset(name, String(request.headers['accept-encoding'] ?? ''));
    if (file === undefined) throw new BerthError('no-route', 'no such file of the console');
    return reply
      .headers({
        'cache-control': `public, max-age=${ONE_YEAR_SECONDS}, immutable`,
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
        ...(file.encoding !== undefined && { 'content-encoding': file.encoding }),
      })
      .type(file.type)
      .send(file.body);
  }

  async #signIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    this.#checkOrigin(request);
    const { key, token } = readCredentials(request.body);
    const record =
      token === undefined
        ? await this.#deps.authenticator.authenticate(key)
        : await this.#deps.sessions.links.redeem(token);
    checkConsoleAccess(record);
    const made = await this.#deps.sessions.create(record, request.headers['user-agent'] ?? '', request.id);
    return reply
      .header('set-cookie', sessionCookie(made.token, made.session.expiresAt, this.#isSecure(request)))
      .header('cache-control', 'no-store')
      .code(204)
      .send();
  }

  async #signOut(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    this.#checkOrigin(request);
    const token = sessionTokenOf(request.raw);
    if (token !== undefined) await this.#deps.sessions.end(token, request.id);
    return reply
      .header('set-cookie', endedSessionCookie(this.#isSecure(request)))
      .code(204)
      .send();
  }

  /** Another site could otherwise sign its visitor in or out. */
  #checkOrigin({ headers }: FastifyRequest): void {
    const foreign = headers.origin !== undefined && !isOwnOrigin(headers, () => this.#deps.origin());
    if (headers[CONSOLE_HEADER] === undefined || foreign)
      throw new BerthError(
        'forbidden',
        `only the console may do this; it sends the header ${CONSOLE_HEADER}`,
      );
  }

  #isSecure({ headers }: FastifyRequest): boolean {
    return headers['x-forwarded-proto'] === 'https' || this.#deps.origin().startsWith('https:');
  }
}

function preload(paths: readonly string[]): string {
  return paths.map((path) => `<${path}>; rel=preload; as=fetch; crossorigin`).join(', ');
}

function readCredentials(body: unknown): { key?: string; token?: string } {
  const fields = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  const text = (name: string): string | undefined => {
    const value = fields[name];
    return typeof value === 'string' && value.length <= MAX_KEY_LENGTH ? value.trim() : undefined;
  };
  const [key, token] = [text('key'), text('token')];
  if (token !== undefined) return { token };
  if (key === undefined || key === '')
    throw new BerthError('rule', 'give an API key in the field "key", or the token of a sign-in link');
  return { key };
}

/** The console is a client of REST v2: a key without that sees nothing. */
function checkConsoleAccess(key: ApiKey): void {
  if (!permits(scopeLevelOf(key, 'rest'), 'read'))
    throw new BerthError(
      'forbidden',
      'this key may not read through REST, which the console uses; sign in with another key',
    );
}
