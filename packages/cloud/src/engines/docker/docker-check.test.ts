import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkDocker } from './docker-check.ts';

describe('whether there is a Docker daemon', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-check-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('where it is turned off, none is looked for', async () => {
    assert.deepEqual(await checkDocker({ BERTH_DOCKER: 'off', DOCKER_HOST: 'nonsense' }), {
      check: 'docker',
      ok: true,
      found: 'turned off with BERTH_DOCKER; folders run, images of a registry do not',
    });
  });

  test('where none answers, that is no fault, and it is said what does not run', async () => {
    const place = `unix://${join(folder, 'nobody.sock')}`;
    for (const env of [{ BERTH_DOCKER: place }, { DOCKER_HOST: place }]) {
      const { ok, found } = await checkDocker(env);
      assert.equal(ok, true);
      assert.ok(
        found.startsWith(`no Docker daemon answers at ${place}`) &&
          found.endsWith('; folders run, images of a registry do not'),
        found,
      );
    }
  });

  test('one that answers is named by its place', async () => {
    const socket = join(folder, 'daemon.sock');
    const daemon = createServer((request, response) =>
      response.writeHead(request.url === '/_ping' ? 200 : 404).end('OK'),
    );
    daemon.listen(socket);
    await once(daemon, 'listening');
    try {
      assert.deepEqual(await checkDocker({ BERTH_DOCKER: `unix://${socket}` }), {
        check: 'docker',
        ok: true,
        found: `a daemon answers at unix://${socket}`,
      });
    } finally {
      daemon.close();
    }
  });
});
