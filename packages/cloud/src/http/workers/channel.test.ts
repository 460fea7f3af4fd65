import assert from 'node:assert/strict';
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../../../tests/support/databases.ts';
import { benches } from '../../jobs/test-bench.ts';
import { createLog } from '../../support/log.ts';
import { WorkerChannel } from './channel.ts';

const VALUES = 5_000;

for (const kind of DATABASES) {
  describe(`the channel of a worker, on ${kind}`, () => {
    const bench = benches(kind);

    test('of values that a job shows faster than they are kept, the last one is, and the result does not wait for the others', async (context) => {
      const on = bench();
      const progress = context.mock.method(on.queue, 'progress');
      const [near, far] = duplexPair();
      new WorkerChannel({ socket: near, queue: on.queue, endpointId: on.id, workerId: 'w', log: createLog({ level: 'silent', format: 'json' }) });
      const job = await on.submit();
      const { lease } = await on.takeOne('w');
      const said = `${job.id} ${String(lease)}`;
      far.write(Array.from({ length: VALUES }, (_, n) => `P ${said} ${n}\n`).join(''));
      far.write(`D ${said} {"output":"whole"}\n`);
      const [answer] = (await once(far.setEncoding('utf8'), 'data')) as [string];
      assert.equal(answer, `A ${said}\n`);
      assert.equal(await on.status(job), 'COMPLETED');
      const shown = progress.mock.calls.map(({ arguments: [, , , value] }) => value);
      assert.ok(shown.length <= 2, `${shown.length} values were kept`);
      assert.equal(shown.at(-1), String(VALUES - 1));
      far.destroy();
      near.destroy();
    });
  });
}
