import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordCrash, NO_CRASHES } from './crash-backoff.ts';
import { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { sampleWorker } from './worker.fixture.ts';

function workerSet(): EndpointWorkerSet {
  return new EndpointWorkerSet('e');
}

describe('the workers of one endpoint', () => {
  test('are counted by state; a worker that is drained before it was ready is not counted', () => {
    const some = workerSet();
    some.add(sampleWorker('starting'));
    some.add(sampleWorker('idle', { state: 'ready', readyAt: 2 }));
    some.add(sampleWorker('running', { state: 'ready', readyAt: 2 })).busy = true;
    some.add(sampleWorker('finishing', { state: 'leaving', readyAt: 2 })).busy = true;
    some.add(sampleWorker('called back', { state: 'leaving' }));
    some.add(sampleWorker('sick', { state: 'ready', readyAt: 2 })).unhealthyReason = 'its health check fails';
    some.setPlacementFailure(4, 'full');
    assert.deepEqual(some.counts(), {
      idle: 1,
      initializing: 1,
      ready: 3,
      running: 2,
      throttled: 4,
      unhealthy: 1,
    });
  });

  test('an endpoint in a crash loop has one unhealthy worker', () => {
    const some = workerSet();
    const crash = { lastLine: 'gone', ran: true, now: 1 };
    some.crashes = recordCrash(NO_CRASHES, crash);
    assert.equal(some.counts().unhealthy, 0);
    some.crashes = recordCrash(some.crashes, crash);
    assert.equal(some.counts().unhealthy, 1);
  });

  test('of a new version, or of one that is deployed again, start without the crashes before', () => {
    const some = workerSet();
    const crash = { lastLine: 'gone', ran: true, now: 1 };
    assert.equal(some.setVersion(1), true);
    some.crashes = recordCrash(NO_CRASHES, crash);
    assert.equal(some.setVersion(1), false);
    assert.equal(some.crashes.count, 1);
    assert.equal(some.setVersion(2), true);
    assert.equal(some.crashes.count, 0);
    some.crashes = recordCrash(NO_CRASHES, crash);
    some.onEndpointChanged();
    assert.equal(some.setVersion(2), true);
    assert.equal(some.crashes.count, 0);
  });

  test('give the reason why none takes a job: the cause before its consequences', () => {
    const some = workerSet();
    assert.equal(some.reason(3), 'no worker wanted yet');
    assert.equal(
      some.reason(3, () => 'no engine for it'),
      'no worker can be placed: no engine for it',
    );
    const worker = some.add(sampleWorker('w'));
    assert.equal(some.reason(3), 'a worker is starting');
    worker.progress = 'pulling layer 3 of 7';
    assert.equal(some.reason(3), 'a worker is starting: pulling layer 3 of 7');
    some.add(sampleWorker('v'));
    worker.runningSince = 5;
    assert.equal(some.reason(3), '2 workers are starting');
    some.setPlacementFailure(1, 'no room');
    assert.equal(some.reason(3), 'no worker can be placed: no room');
    some.crashes = recordCrash(NO_CRASHES, { lastLine: 'no model', ran: true, now: 1 });
    assert.match(some.reason(3) ?? '', /the last one said: no model$/);
    assert.match(some.reason(0) ?? '', /the maximum of this endpoint is 0$/);
    worker.record = { ...worker.record, state: 'ready', readyAt: 2 };
    assert.equal(some.reason(3), undefined);
  });

  test('are active when ready or starting, and not when drained', () => {
    const some = workerSet();
    assert.equal(some.hasActiveWorker, false);
    some.add(sampleWorker('w', { state: 'leaving', readyAt: 1 }));
    assert.equal(some.hasActiveWorker, false);
    some.add(sampleWorker('v'));
    assert.equal(some.hasActiveWorker, true);
  });

  test('forget their crashes when those are over', () => {
    const some = workerSet();
    some.crashes = recordCrash(NO_CRASHES, { lastLine: 'gone', ran: true, now: 1_000 });
    some.add(sampleWorker('w', { state: 'ready', readyAt: 2_000 }));
    some.resetCrashesIfRecovered(1, 62_000);
    assert.equal(some.crashes.count, 1);
    some.resetCrashesIfRecovered(1, 62_001);
    assert.equal(some.crashes, NO_CRASHES);
  });
});
