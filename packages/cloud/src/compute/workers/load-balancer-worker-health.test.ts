import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Endpoint } from '../../domain/records.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { LoadBalancerWorkerHealth } from './load-balancer-worker-health.ts';
import type { ProbeResult } from './load-balancer-worker-health.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

const endpoint: Endpoint = { ...sampleEndpoint, id: 'e', type: 'LOAD_BALANCER' };
const ADDRESS = { host: '127.0.0.1', port: 80 };
const CHECK_EVERY_MS = 5_000;

describe('a load balanced worker that an earlier server left', () => {
  let clock: ManualClock;
  let answer: ProbeResult;
  let dismissed: (string | null)[];
  let registry: WorkerRegistry;
  let health: LoadBalancerWorkerHealth;

  beforeEach(() => {
    clock = new ManualClock();
    dismissed = [];
    const log = createLog({ level: 'silent', format: 'json' });
    registry = new WorkerRegistry({ saveWorker: async () => undefined } as unknown as WorkerStore, log);
    const engine = { address: async () => ADDRESS } as unknown as InstanceEngine;
    const termination = {
      drain: async (one: TrackedWorker, reason: string | null) => {
        one.record = { ...one.record, state: 'leaving' };
        dismissed.push(reason);
      },
    } as unknown as WorkerTermination;
    health = new LoadBalancerWorkerHealth({
      registry: registry,
      termination: termination,
      engines: new Map([['LOCAL-1', engine]]),
      probe: async () => answer,
      inFlight: () => 0,
      clock,
      log,
    });
  });

  const adopted = (state: 'starting' | 'ready'): TrackedWorker =>
    registry
      .getOrCreate('e')
      .add(
        sampleWorker('w', { endpointId: 'e', state, handle: '{}', readyAt: state === 'ready' ? 1 : null }),
      );

  async function checks(worker: TrackedWorker, count: number): Promise<void> {
    for (let done = 0; done < count; done += 1) {
      clock.advance(CHECK_EVERY_MS);
      await health.check(worker, endpoint, clock.now());
    }
  }

  test('and that hangs is unhealthy after three checks, and let go after six', async () => {
    answer = 'unhealthy';
    const worker = adopted('ready');
    await checks(worker, 2);
    assert.equal(worker.unhealthyReason, null);
    await checks(worker, 1);
    assert.deepEqual([worker.unhealthyReason, dismissed], ['its health check fails', []]);
    await checks(worker, 3);
    assert.deepEqual(dismissed, ['its health check fails']);
  });

  test('and that comes back takes requests again', async () => {
    answer = 'unhealthy';
    const worker = adopted('ready');
    await checks(worker, 5);
    answer = 'ready';
    await checks(worker, 1);
    assert.deepEqual([worker.address, worker.failedChecks, worker.unhealthyReason], [ADDRESS, 0, null]);
    answer = 'unhealthy';
    await checks(worker, 5);
    assert.deepEqual(dismissed, []);
    registry.removeWorker(worker);
  });

  test('before it was ready is asked until it is, with no strikes: it has the time of its start', async () => {
    answer = 'starting';
    const worker = adopted('starting');
    await checks(worker, 20);
    assert.deepEqual([worker.failedChecks, dismissed], [0, []]);
    answer = 'ready';
    while (worker.address === undefined) await registry.changes.waitForNext('e', 1_000).changed;
    assert.equal(worker.record.state, 'ready');
  });
});
