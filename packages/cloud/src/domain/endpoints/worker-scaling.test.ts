import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { scale } from './worker-scaling.ts';
import type { EndpointLoad, ScaledWorker, ScalerSettings } from './worker-scaling.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const NOW = 1_000_000;
const settings = (over: Partial<ScalerSettings> = {}): ScalerSettings => ({
  workersMin: 0,
  workersMax: 10,
  idleTimeout: 5,
  scalerType: 'QUEUE_DELAY',
  scalerValue: 4,
  ...over,
});
const load = (over: Partial<EndpointLoad> = {}): EndpointLoad => ({
  waiting: 0,
  overdue: 0,
  inProgress: 0,
  ...over,
});
const worker = (id: string, over: Partial<ScaledWorker> = {}): ScaledWorker => ({
  id,
  state: 'ready',
  busy: false,
  idleSince: NOW,
  ...over,
});

describe('the scaler', () => {
  test('starts a worker at once if there is none and a job waits', () => {
    assert.deepEqual(scale(settings(), load({ waiting: 5 }), [], NOW), { start: 1, stop: [] });
    assert.deepEqual(scale(settings({ workersMax: 0 }), load({ waiting: 5 }), [], NOW), {
      start: 0,
      stop: [],
    });
    assert.deepEqual(scale(settings(), load(), [], NOW), { start: 0, stop: [] });
  });

  test('by queue delay gives every overdue job a worker, minus those that are starting', () => {
    const busy = worker('a', { busy: true, idleSince: null });
    const starting = worker('b', { state: 'starting', idleSince: null });
    assert.equal(scale(settings(), load({ waiting: 6, overdue: 4 }), [busy], NOW).start, 4);
    assert.equal(scale(settings(), load({ waiting: 6, overdue: 4 }), [busy, starting], NOW).start, 3);
    assert.equal(
      scale(settings({ workersMax: 3 }), load({ waiting: 100, overdue: 100 }), [busy], NOW).start,
      2,
    );
  });

  test('by request count goes to the target in one step', () => {
    const byCount = settings({ scalerType: 'REQUEST_COUNT', scalerValue: 4, workersMax: 100 });
    assert.equal(scale(byCount, load({ waiting: 97, inProgress: 3 }), [], NOW).start, 25);
    assert.equal(scale(byCount, load({ waiting: 1 }), [], NOW).start, 1);
  });

  test('keeps the minimum, and stops workers only after their idle timeout, the longest idle first', () => {
    assert.equal(scale(settings({ workersMin: 2 }), load(), [], NOW).start, 2);
    const workers = [
      worker('young', { idleSince: NOW - 4_999 }),
      worker('old', { idleSince: NOW - 9_000 }),
      worker('older', { idleSince: NOW - 10_000 }),
    ];
    assert.deepEqual(scale(settings(), load(), workers, NOW).stop, ['older', 'old']);
    assert.deepEqual(scale(settings({ workersMin: 2 }), load(), workers, NOW).stop, ['older']);
    assert.deepEqual(
      scale(settings(), load(), [worker('slow', { state: 'starting', idleSince: null })], NOW + 10_000_000)
        .stop,
      [],
    );
  });

  test('above a lowered maximum stops idle workers first', () => {
    const workers = [worker('busy', { busy: true, idleSince: null }), worker('idle')];
    assert.deepEqual(scale(settings({ workersMax: 1 }), load({ inProgress: 1 }), workers, NOW).stop, [
      'idle',
    ]);
    assert.deepEqual(scale(settings({ workersMax: 0 }), load({ inProgress: 1 }), workers, NOW).stop.sort(), [
      'busy',
      'idle',
    ]);
  });
});

const anyWorker = fc.record({
  state: fc.constantFrom('starting' as const, 'ready' as const, 'leaving' as const),
  busy: fc.boolean(),
  ago: fc.nat(20_000),
});
const anySettings = fc.record({
  workersMin: fc.nat(5),
  above: fc.nat(20),
  idleTimeout: fc.integer({ min: 1, max: 10 }),
  scalerType: fc.constantFrom('QUEUE_DELAY' as const, 'REQUEST_COUNT' as const),
  scalerValue: fc.integer({ min: 1, max: 10 }),
});

test(`keeps to minimum and maximum, and stops no busy or starting worker (seed ${seed})`, () => {
  fc.assert(
    fc.property(
      anySettings,
      fc.nat(200),
      fc.nat(200),
      fc.nat(50),
      fc.array(anyWorker, { maxLength: 30 }),
      ({ above, ...rest }, waiting, late, inProgress, given) => {
        const chosen: ScalerSettings = { ...rest, workersMax: rest.workersMin + above };
        const workers = given.map(
          ({ state, busy, ago }, index): ScaledWorker => ({
            id: `w${index}`,
            state,
            busy: busy && state === 'ready',
            idleSince: state === 'ready' && !busy ? NOW - ago : null,
          }),
        );
        const { start, stop } = scale(
          chosen,
          { waiting, overdue: Math.min(late, waiting), inProgress },
          workers,
          NOW,
        );
        const present = workers.filter(({ state }) => state !== 'leaving');
        const after = present.length + start - stop.length;
        if (start > 0) assert.ok(present.length + start <= chosen.workersMax);
        assert.ok(start === 0 || stop.length === 0);
        assert.ok(after >= Math.min(chosen.workersMin, Math.max(present.length, chosen.workersMin)));
        assert.ok(after <= Math.max(chosen.workersMax, 0) || present.length > chosen.workersMax);
        if (present.length <= chosen.workersMax) {
          for (const id of stop) {
            const worker = workers.find((candidate) => candidate.id === id);
            assert.ok(
              worker?.state === 'ready' &&
                !worker.busy &&
                NOW - (worker.idleSince ?? NOW) >= chosen.idleTimeout * 1000,
            );
          }
        }
        assert.equal(new Set(stop).size, stop.length);
      },
    ),
    { seed, numRuns: 3_000 },
  );
});

test(`a varying load does not start and stop workers (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: 50, maxLength: 200 }), (jitter) => {
      const chosen = settings({
        scalerType: 'REQUEST_COUNT',
        scalerValue: 1,
        idleTimeout: 5,
        workersMax: 20,
      });
      let workers: ScaledWorker[] = [];
      let stopped = 0;
      let started = 0;
      jitter.forEach((more, tick) => {
        const now = NOW + tick * 500;
        const inProgress = 5 + more;
        const { start, stop } = scale(chosen, load({ inProgress }), workers, now);
        started += start;
        stopped += stop.length;
        const kept = [
          ...workers.filter(({ id }) => !stop.includes(id)),
          ...Array.from({ length: start }, (_, n) => worker(`${tick}-${n}`)),
        ];
        workers = kept.map((each, index) =>
          index < inProgress
            ? { ...each, busy: true, idleSince: null }
            : { ...each, busy: false, idleSince: each.busy ? now : (each.idleSince ?? now) },
        );
      });
      // The busiest moment needs 8; whoever was stopped had nothing to do for five seconds on end.
      assert.ok(workers.length <= 8);
      assert.ok(started - stopped === workers.length);
      assert.ok(stopped <= jitter.length / 10, `${stopped} stops in ${jitter.length} ticks`);
    }),
    { seed, numRuns: 300 },
  );
});
