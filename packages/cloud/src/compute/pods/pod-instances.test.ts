import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { markEnded, markRunning, requestStop } from '../../domain/pods/pod-transitions.ts';
import { samplePod } from '../../domain/pods/pod.fixture.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceHandle } from '../../engines/instance.ts';
import { ManualClock } from '../../support/clock.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import type { CloudEvents } from '../../domain/events.ts';
import { PodInstances, type PodInstancesDeps } from './pod-instances.ts';

const STARTED_AT = 100;
const handle = { pid: 1 } as unknown as InstanceHandle;
const run = { handle: JSON.stringify(handle), startedAt: STARTED_AT };

describe('what changed while a pod was started', () => {
  let stored: Pod;
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock(1_000);
    stored = { ...samplePod, volumeSize: 0 };
  });

  /** Starts the pod; meanwhile its record becomes what `meanwhile` says. */
  async function start(meanwhile: (pod: Pod) => Pod): Promise<void> {
    const engine = {
      start: async () => {
        stored = meanwhile(stored);
        return handle;
      },
      adopt: async () => ({ id: stored.id, status: 'running', startedAt: STARTED_AT, labels: {}, handle }),
    } as unknown as InstanceEngine;
    const instances = new PodInstances({
      store: {
        observe: async (_: string, next: (current: Pod) => Pod | undefined) => {
          stored = next(stored) ?? stored;
          return stored;
        },
      },
      specSources: {
        resolveEnv: async () => ({}),
        sshKeys: async () => [],
        jupyterPassword: () => '',
        publicIp: () => '127.0.0.1',
        tokenFor: () => '',
        serverUrl: async () => 'http://127.0.0.1:1',
        credentials: async () => undefined,
        networkVolume: async () => undefined,
      },
      wake: () => undefined,
      isClosed: () => false,
      events: new EventBus<CloudEvents>(),
      clock,
      log: createLog({ level: 'silent', format: 'json' }),
    } as unknown as PodInstancesDeps);
    await instances.execute('start', stored, engine, undefined);
  }

  test('an end that another server recorded stays', async () => {
    await start((pod) =>
      markEnded(markRunning(pod, run, clock.now()), { at: 200, exitCode: 0, reason: null }),
    );
    assert.deepEqual(
      [stored.status, stored.settled, stored.startedAt, stored.endedAt],
      ['EXITED', true, STARTED_AT, 200],
    );
  });

  test('what was started is found by the next reconciliation, where a stop was asked for', async () => {
    await start((pod) => requestStop(pod, clock.now()));
    assert.deepEqual(
      [stored.wanted, stored.settled, stored.handle, stored.startedAt, stored.endedAt],
      ['stopped', false, run.handle, STARTED_AT, null],
    );
  });

  test('it is found also where the pod was recorded as ended before it was started', async () => {
    await start((pod) => markEnded(pod, { at: 200, exitCode: null, reason: null }));
    assert.deepEqual([stored.settled, stored.handle, stored.endedAt], [false, run.handle, null]);
  });
});
