import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { createQueueEndpoint } from '../../../packages/testing/src/queue-endpoint-client.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { documentationCode } from '../../support/documentation-code.ts';
import { installedPython } from '../python-programs.ts';

const python = installedPython('runpod');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

describe('the pages of the Python SDK', () => {
  const fixture = clearedServerFixture();
  const home = mkdtempSync(join(tmpdir(), 'berth-pages-'));
  const env = { PATH: `${dirname(python.path)}:${process.env['PATH']}`, HOME: home };
  after(() => rmSync(home, { recursive: true }));
  const reader = (endpointId?: string) => ({
    url: fixture.server.url,
    key: fixture.server.key,
    ...(endpointId !== undefined && { endpointId }),
  });

  test('python-worker.md: the handler runs where its reader starts it', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    writeFileSync(join(home, 'handler.py'), documentationCode('python-worker.md', 'python', 0, reader()));
    const worker = spawn(
      'sh',
      [
        '-ec',
        documentationCode('python-worker.md', 'sh', 2, reader(jobs.id)).replace(
          'python -u',
          'exec python -u',
        ),
      ],
      { cwd: home, env, stdio: 'ignore' },
    );
    try {
      const { body } = await jobs.runSync({ name: 'world' }, LIMIT_MS);
      assert.deepEqual([body.output, body.workerId], [{ hello: 'world' }, 'my-laptop']);
    } finally {
      worker.kill();
      await once(worker, 'exit');
    }
  });

  test('python-sdk.md: two variables, and both halves of the SDK and its command line are here', async () => {
    const { body } = await fixture.operator.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'echo',
      type: 'QUEUE',
      image: 'local/echo',
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
      workers: { min: 0, max: 1 },
    });
    const lines = documentationCode('python-sdk.md', 'sh', 0, reader());
    writeFileSync(join(home, 'sdk.py'), documentationCode('python-sdk.md', 'python', 0, reader(body.id)));
    const sdk = await run('sh', ['-ec', `${lines}\npython sdk.py`], { cwd: home, env, timeout: LIMIT_MS });
    assert.equal(sdk.stdout, "{'message': 'hello'}\n{'message': 'again'} COMPLETED\n['mine']\n");
    const commands = await run(
      'sh',
      ['-ec', `${lines}\n${documentationCode('python-sdk.md', 'sh', 1, reader())}`],
      {
        cwd: home,
        env,
        timeout: LIMIT_MS,
      },
    );
    assert.match(commands.stdout, /Credentials set[\s\S]*\| ID \|[\s\S]*Fingerprint/);
  });
});
