import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

/** What a plain start does without. Each of these costs time and memory of every start. */
const LATER = [
  'node_modules/@rgrove/parse-xml/',
  'node_modules/ajv/',
  'node_modules/graphql/',
  'node_modules/pg/',
  'node_modules/tar-stream/',
  'src/engines/docker/docker-engine.ts',
  'src/engines/kubernetes/client/',
  'src/store/postgres/',
  'src/store/sqlite/open-database.ts',
];

test('the server is loaded without what only some servers or requests need', () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    await import(${JSON.stringify(new URL('run-server.ts', import.meta.url))});
    process.stdout.write(JSON.stringify(loaded));
    process.exit(0);`;
  const loaded = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
  ) as string[];
  assert.ok(loaded.some((url) => url.includes('node_modules/fastify/')));
  for (const part of LATER)
    assert.deepEqual(
      loaded.filter((url) => url.includes(part)),
      [],
      `${part} is loaded at every start`,
    );
});

test('the Docker engine loads no package', () => {
  const engine = JSON.stringify(new URL('../engines/docker/docker-engine.ts', import.meta.url));
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    await import(${engine});
    process.stdout.write(JSON.stringify(loaded.filter((url) => url.includes('node_modules/'))));`;
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
    '[]',
  );
});

test('the GraphQL library is not loaded with the routes', () => {
  const routes = new URL('../http/graphql/graphql.routes.ts', import.meta.url).href;
  const script =
    `await import(${JSON.stringify(routes)}); const { createRequire } = await import('node:module'); ` +
    'process.stdout.write(Object.keys(createRequire(import.meta.url).cache).filter((file) => ' +
    `file.includes('/graphql/')).join());`;
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
    '',
  );
});

test('the schema validator is loaded with the first value', () => {
  const module = JSON.stringify(new URL('../http/rest/schema-validator.ts', import.meta.url));
  const script = `
    import { createRequire } from 'node:module';
    const { validator, queryReader } = await import(${module});
    const { cache } = createRequire(${JSON.stringify(import.meta.url)});
    const loaded = () => Object.keys(cache).some((file) => /[\\\\/]ajv[\\\\/]/.test(file));
    const check = validator({ type: 'string' });
    queryReader({ type: 'object', properties: {} });
    const before = loaded();
    check('x');
    process.stdout.write(JSON.stringify([before, loaded()]));`;
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
    '[false,true]',
  );
});
