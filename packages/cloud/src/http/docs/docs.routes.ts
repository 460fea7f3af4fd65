import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { BerthError } from '../../support/errors.ts';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};
/** Names as the build makes them: no dot first, so that no path leads out of the folder. */
const FILE_PATH = /^(?:[\w@-][\w.@~-]*\/)*[\w@-][\w.@~-]*$/;
const ONE_YEAR_SECONDS = 31_536_000;

/** The site has small scripts in its pages; it takes nothing from another host. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/** The documentation at /docs, from the folder that `npm run docs:build` writes. */
export function docsRoutes(app: FastifyInstance, folder: string): void {
  app.get('/docs', async (_request, reply) => reply.redirect('/docs/', 308));
  app.get('/docs/*', async (request, reply) => {
    const { '*': path } = request.params as { '*': string };
    const wantsHtml = request.headers.accept?.includes('text/html') === true;
    return sendFile(reply, folder, path === '' ? 'index.html' : path, wantsHtml);
  });
}

async function sendFile(
  reply: FastifyReply,
  folder: string,
  path: string,
  wantsHtml: boolean,
): Promise<FastifyReply> {
  if (!FILE_PATH.test(path)) throw new BerthError('no-route', 'no such page of the documentation');
  // Pages have addresses without .html.
  const name = TYPES[extname(path)] === undefined ? `${path}.html` : path;
  const body = await readIfExists(join(folder, name));
  if (body === undefined) return sendMissing(reply, folder, wantsHtml);
  return reply
    .headers({
      ...SECURITY_HEADERS,
      'cache-control': name.startsWith('assets/')
        ? `public, max-age=${ONE_YEAR_SECONDS}, immutable`
        : 'no-cache',
    })
    .type(TYPES[extname(name)] ?? 'application/octet-stream')
    .send(body);
}

/** A clone is started without the tools that build the site: that page says what to do. */
const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Documentation of Berth</title>
<body style="font: 1rem/1.5 system-ui; max-width: 40rem; margin: 4rem auto; padding: 0 1rem">
<h1>The documentation is not built yet</h1>
<p>In the folder of this Berth, run</p>
<pre><code>npm run docs:build</code></pre>
<p>and load this page again; Berth need not be restarted. It takes about a minute the first time.
The same pages are Markdown files in the folder <code>docs</code>.</p>
`;

async function sendMissing(reply: FastifyReply, folder: string, wantsHtml: boolean): Promise<FastifyReply> {
  const page = (await readIfExists(join(folder, '404.html'))) ?? (wantsHtml ? NOT_BUILT : undefined);
  if (page === undefined)
    throw new BerthError(
      'no-route',
      'the documentation was not built; in a clone, `npm run docs:build` builds it from docs/',
    );
  return reply.code(404).headers(SECURITY_HEADERS).type('text/html; charset=utf-8').send(page);
}

async function readIfExists(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if (['ENOENT', 'EISDIR', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined;
    throw error;
  }
}
