import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { openTerminal, openRefusedTerminal } from '../packages/testing/src/terminal-client.ts';
import { deployHandler, listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

describe('terminals of workers', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  let ann: TestAccount;
  let bob: TestAccount;
  before(async () => {
    ann = await fixture.createAccount('ann');
    bob = await fixture.createAccount('bob');
  });

  test('a command runs beside a worker, with its environment; strangers and ended workers are refused', async () => {
    const endpointId = await deployHandler(
      ann,
      'echo',
      'export default ({ input }: { input: unknown }) => input;',
      {
        workers: { min: 1, max: 1 },
      },
    );
    const worker = await waitFor('a worker is ready', async () =>
      (await listWorkers(ann, endpointId)).find(({ status }) => status === 'IDLE'),
    );
    const path = (workerId: string, query = ''): string =>
      `${fixture.server.url.replace(/^http/, 'ws')}/v2/serverless/${endpointId}/workers/${workerId}/terminal${query}`;
    const bearer = { authorization: `Bearer ${ann.key}` };
    const terminal = await openTerminal(
      path(
        worker.id,
        `?cmd=sh&cmd=-c&cmd=${encodeURIComponent('echo $RUNPOD_ENDPOINT_ID $RUNPOD_POD_ID; exit 4')}`,
      ),
      bearer,
    );
    assert.equal((await terminal.ended).exit?.exitCode, 4);
    assert.equal(terminal.stdout().toString(), `${endpointId} ${worker.id}\n`);
    const shell = await openTerminal(path(worker.id), bearer);
    shell.type('tty && exit 3\n');
    assert.equal((await shell.ended).exit?.exitCode, 3);

    assert.equal(
      (await openRefusedTerminal(path(worker.id), { authorization: `Bearer ${bob.key}` })).status,
      404,
    );
    assert.equal((await openRefusedTerminal(path('nobody'), bearer)).status, 404);
    assert.equal((await openRefusedTerminal(path(worker.id))).status, 401);
    assert.equal(
      (await ann.call('PATCH', `/v2/serverless/${endpointId}`, { workers: { min: 0, max: 0 } })).status,
      200,
    );
    const ended = await waitFor('it has ended', async () => {
      const refused = await openRefusedTerminal(path(worker.id), bearer).catch(() => undefined);
      return refused?.status === 409 && refused;
    });
    assert.match(ended.detail, /has ended|does not run/);
    assert.equal((await ann.call('DELETE', `/v2/serverless/${endpointId}`)).status, 204);
  });
});
