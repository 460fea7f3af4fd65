import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkDocker } from './docker-check.ts';

describe('docker check', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-check-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('does not search for a daemon when Docker is turned off', async () => {
    assert.deepEqual(await checkDocker({ BERTH_DOCKER: 'off', DOCKER_HOST: 'nonsense' }), {
      check: 'docker',
      ok: true,
      found: 'turned off with BERTH_DOCKER; folders run, images of a registry do not',
    });
  });

  test('without a daemon the check passes and says what cannot run', async () => {
    const host = `unix://${join(folder, 'nobody.sock')}`;
    for (const env of [{ BERTH_DOCKER: host }, { DOCKER_HOST: host }]) {
      const { ok, found } = await checkDocker(env);
      assert.equal(ok, true);
      assert.ok(
        found.startsWith(`no Docker daemon answers at ${host}`) &&
          found.endsWith('; folders run, images of a registry do not'),
        found,
      );
    }
  });

  test('names the address of the daemon that answers, also if it is slow', async () => {
    const socket = join(folder, 'daemon.sock');
    // Slower than what a server waits for that looks again and again.
    const daemon = createServer((request, response) =>
      setTimeout(() => response.writeHead(request.url === '/_ping' ? 200 : 404).end('OK'), 700),
    );
    daemon.listen(socket);
    await once(daemon, 'listening');
    try {
      const { check, ok, found } = await checkDocker({ BERTH_DOCKER: `unix://${socket}` });
      assert.deepEqual([check, ok], ['docker', true]);
      assert.ok(found.startsWith(`a daemon answers at unix://${socket}; containers reach `), found);
      // It says which of the two holds here, and where to read on.
      assert.match(found, /nothing of this machine but Berth$|because .+ \(docs\/isolation\.md\)$/);
    } finally {
      daemon.close();
    }
  });
});
