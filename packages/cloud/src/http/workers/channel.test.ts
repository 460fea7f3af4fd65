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

    test('asks a queue that has stopped for nothing', async (context) => {
      const on = bench();
      // Like the answers of a queue that has stopped: at once, and empty. The last one is for whoever asks again and again.
      const atOnce = (calls: number): Promise<never[]> => (calls < 10 ? Promise.resolve([]) : new Promise(() => undefined));
      const stops = context.mock.method(on.queue, 'jobsToStop', () => atOnce(stops.mock.callCount()));
      const takes = context.mock.method(on.queue, 'take', () => atOnce(takes.mock.callCount()));
      on.queue.close();
      const [near, far] = duplexPair();
      new WorkerChannel({ socket: near, queue: on.queue, endpointId: on.id, workerId: 'w', log: createLog({ level: 'silent', format: 'json' }) });
      far.write('T 1\nL \n');
      assert.deepEqual(await once(far.setEncoding('utf8'), 'data'), ['H\n']);
      far.destroy();
      near.destroy();
      assert.deepEqual([stops.mock.callCount(), takes.mock.callCount()], [0, 0]);
    });
  });
}
