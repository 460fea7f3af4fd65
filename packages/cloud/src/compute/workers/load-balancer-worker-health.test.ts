import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Endpoint } from '../../domain/records.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { HEALTH_CHECK_INTERVAL_MS } from '../reconcile-settings.ts';
import { LoadBalancerWorkerHealth } from './load-balancer-worker-health.ts';
import type { ProbeResult } from './load-balancer-worker-health.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

const endpoint: Endpoint = { ...sampleEndpoint, id: 'e', type: 'LOAD_BALANCER' };
const ADDRESS = { host: '127.0.0.1', port: 80 };

describe('a load balancing worker that an earlier server started', () => {
  let clock: ManualClock;
  let result: ProbeResult;
  let drained: (string | null)[];
  let registry: WorkerRegistry;
  let health: LoadBalancerWorkerHealth;

  beforeEach(() => {
    clock = new ManualClock();
    drained = [];
    const log = createLog({ level: 'silent', format: 'json' });
    registry = new WorkerRegistry({ saveWorker: async () => undefined } as unknown as WorkerStore, log);
    const engine = { address: async () => ADDRESS } as unknown as InstanceEngine;
    const termination = {
      drain: async (target: TrackedWorker, reason: string | null) => {
        target.record = { ...target.record, state: 'leaving' };
        drained.push(reason);
      },
    } as unknown as WorkerTermination;
    health = new LoadBalancerWorkerHealth({
      registry,
      termination,
      engines: new Map([['LOCAL-1', engine]]),
      probe: async () => result,
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
      clock.advance(HEALTH_CHECK_INTERVAL_MS);
      await health.check(worker, endpoint, clock.now());
    }
  }

  test('is unhealthy after three failed checks, and drained after six', async () => {
    result = 'unhealthy';
    const worker = adopted('ready');
    await checks(worker, 2);
    assert.equal(worker.unhealthyReason, null);
    await checks(worker, 1);
    assert.deepEqual([worker.unhealthyReason, drained], ['its health check fails', []]);
    await checks(worker, 3);
    assert.deepEqual(drained, ['its health check fails']);
  });

  test('takes requests again when its check succeeds again', async () => {
    result = 'unhealthy';
    const worker = adopted('ready');
    await checks(worker, 5);
    result = 'ready';
    await checks(worker, 1);
    assert.deepEqual([worker.address, worker.failedChecks, worker.unhealthyReason], [ADDRESS, 0, null]);
    result = 'unhealthy';
    await checks(worker, 5);
    assert.deepEqual(drained, []);
    registry.removeWorker(worker);
  });

  test('is probed until it is ready; failed probes before that do not count', async () => {
    result = 'starting';
    const worker = adopted('starting');
    await checks(worker, 20);
    assert.deepEqual([worker.failedChecks, drained], [0, []]);
    result = 'ready';
    while (worker.address === undefined) await registry.changes.waitForNext('e', 1_000).changed;
    assert.equal(worker.record.state, 'ready');
  });
});
