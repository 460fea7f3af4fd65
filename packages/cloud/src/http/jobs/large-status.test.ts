import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Delivery, Job } from '../../domain/job-records.ts';
import { JobQueue } from '../../queue/job-queue.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { noopWakeupBus } from '../../store/wakeup-bus.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import { AnswerBudget } from '../answer-budget.ts';
import { FastPathServer } from '../fast-path/fast-path-server.ts';
import { parseJobUrl } from './job-url.ts';
import type { JobUrl } from './job-url.ts';
import { jobRoutes } from './job-routes.fixture.ts';

const LARGE_BYTES = 6 * 1024 * 1024;
const READERS = 12;
/** Two of them at a time. */
const BUDGET = { account: 2 * LARGE_BYTES + 1024, all: 5 * LARGE_BYTES };
const log = createLog({ level: 'silent', format: 'json' });

for (const path of ['fast path', 'Node'] as const) {
  describe(`large answers, over the ${path}`, () => {
    let context: ServiceContext;
    let queue: JobQueue;
    let budget: AnswerBudget;
    let server: Server;
    let base: string;
    /** In the order in which they were read from the store. */
    let loads: string[];
    let mostInFlight: number;

    before(async () => {
      context = await createServiceContext();
    });
    after(() => context.close());
    afterEach(() => {
      server.closeAllConnections();
      server.close();
    });

    const start = async (): Promise<void> => {
      loads = [];
      mostInFlight = 0;
      budget = new AnswerBudget(BUDGET);
      const { jobs } = context.store;
      queue = new JobQueue({
        store: {
          ...jobs,
          readOutput: (endpointId, seq) => {
            loads.push(endpointId);
            mostInFlight = Math.max(mostInFlight, budget.bytesInFlight);
            return jobs.readOutput(endpointId, seq);
          },
        },
        wakeups: noopWakeupBus,
        clock: context.clock,
        log,
        deliveryOf: (): Delivery => assert.fail(),
        events: new EventBus(),
      });
      await queue.recover();
      const routes = jobRoutes(context, { queue, answerBudget: budget });
      server =
        path === 'Node'
          ? createServer((incoming, response) => {
              void routes.serve(incoming, response, parseJobUrl(incoming.url ?? '') as JobUrl);
            })
          : new FastPathServer(
              {},
              {
                accepts: () => true,
                serveFastPath: (incoming, response) =>
                  void routes.serve(incoming, response, parseJobUrl(incoming.url) as JobUrl),
                closing: false,
              },
            );
      await once(server.listen(0, '127.0.0.1'), 'listening');
      base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    };

    const finished = async (account: string, output: string): Promise<Job> => {
      const endpoint = { ...sampleEndpoint, id: account, accountId: account };
      const job = await queue.submit({ endpoint, accountId: account, request: '{"input":1}', options: {} });
      const signal = new AbortController().signal;
      await queue.take(account, 'w', 1, 1000, signal);
      await queue.finish(account, job.seq, { workerId: 'w', jobId: job.id }, { output, error: null });
      return job;
    };
    const open = async (account: string, { id }: Job): Promise<IncomingMessage> => {
      const asking = request(`${base}/v2/${account}/status/${id}`, {
        agent: false,
        headers: { authorization: `Bearer ${account}` },
      }).end();
      const [response] = (await once(asking, 'response')) as [IncomingMessage];
      return response;
    };
    const bodyOf = async (response: IncomingMessage): Promise<string> =>
      Buffer.concat((await response.toArray()) as Buffer[]).toString();

    test('arrive whole, with few of them in memory, and none afterwards', async () => {
      await start();
      const output = JSON.stringify(`ü${'x'.repeat(LARGE_BYTES)}`);
      const job = await finished('ann', output);
      const bodies = await Promise.all(
        Array.from({ length: READERS }, async () => bodyOf(await open('ann', job))),
      );
      for (const body of bodies) {
        const shown = JSON.parse(body) as { id: string; status: string; output: string };
        assert.deepEqual([shown.id, shown.status], [job.id, 'COMPLETED']);
        assert.equal(JSON.stringify(shown.output), output);
      }
      // Those that come later than the others may need another read.
      assert.ok(loads.length <= READERS / 2, `read ${loads.length} times for ${READERS} readers`);
      assert.ok(mostInFlight >= LARGE_BYTES && mostInFlight <= BUDGET.account, `${mostInFlight} in flight`);
      while (budget.bytesInFlight > 0) await new Promise((resolve) => setImmediate(resolve));
    });

    test('of an account that reads none of them delay neither small answers nor those of others', async () => {
      await start();
      const large = `"${'x'.repeat(LARGE_BYTES)}"`;
      const [anns, bobs] = [await finished('ann', large), await finished('bob', large)];
      const small = await finished('ann', '"small"');
      // Those that are not answered wait for memory, which nobody returns.
      const stalled = Array.from({ length: READERS }, () => open('ann', anns));
      while (budget.bytesInFlight < 2 * LARGE_BYTES) await new Promise((resolve) => setImmediate(resolve));
      assert.match(await bodyOf(await open('ann', small)), /"small"/);
      assert.equal((await bodyOf(await open('bob', bobs))).length > LARGE_BYTES, true);
      assert.deepEqual(loads, ['ann', 'bob']);
      server.closeAllConnections();
      await Promise.allSettled(stalled);
      while (budget.bytesInFlight > 0) await new Promise((resolve) => setImmediate(resolve));
    });
  });
}
