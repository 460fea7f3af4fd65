import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { BerthError } from '../../support/errors.ts';
import type { MarkdownSite } from './markdown-site.ts';

const HTML = 'text/html; charset=utf-8';
const TYPES: Record<string, string> = {
  '.html': HTML,
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
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' " +
    "'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/** A folder with the built site, as packages have it; or, in a clone, the folder with its Markdown. */
export type DocsSource = { site: string } | { markdown: string };

/** The documentation at /docs. */
export function docsRoutes(app: FastifyInstance, source: DocsSource): void {
  let rendered: MarkdownSite | undefined;
  app.get('/docs', async (_request, reply) => reply.redirect('/docs/', 308));
  app.get('/docs/*', async (request, reply) => {
    const { '*': path } = request.params as { '*': string };
    if ('site' in source) return sendFile(reply, source.site, path === '' ? 'index.html' : path);
    const { q = '' } = request.query as { q?: string | string[] };
    const { MarkdownSite: Site } = await import('./markdown-site.ts');
    rendered ??= new Site(source.markdown);
    return sendMarkdown(reply, rendered, path, String(q));
  });
}

function sendMarkdown(reply: FastifyReply, site: MarkdownSite, path: string, query: string): FastifyReply {
  const page = path === 'search' ? site.search(query) : site.page(path.replace(/\.(?:html|md)$/, ''));
  return reply
    .code(page === undefined ? 404 : 200)
    .headers({ ...SECURITY_HEADERS, 'cache-control': 'no-cache' })
    .type(HTML)
    .send(page ?? site.notFound());
}

async function sendFile(reply: FastifyReply, folder: string, path: string): Promise<FastifyReply> {
  if (!FILE_PATH.test(path)) throw new BerthError('no-route', 'no such page of the documentation');
  // Pages have addresses without .html.
  const name = TYPES[extname(path)] === undefined ? `${path}.html` : path;
  const body = await readIfExists(join(folder, name));
  if (body === undefined) return sendMissing(reply, folder);
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

async function sendMissing(reply: FastifyReply, folder: string): Promise<FastifyReply> {
  const page = await readIfExists(join(folder, '404.html'));
  if (page === undefined)
    throw new BerthError('no-route', 'the documentation is not part of this installation');
  return reply.code(404).headers(SECURITY_HEADERS).type(HTML).send(page);
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
