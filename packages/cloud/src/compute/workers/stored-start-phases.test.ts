import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitedForStart } from '../../domain/endpoints/start-phases.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import { StoredStartPhases } from './stored-start-phases.ts';
import { sampleWorker } from './worker.fixture.ts';

test('the phases of a worker are read once when they are final, also of one that Berth did not start', async () => {
  const reads: string[] = [];
  const records = new Map<string, Worker>([
    ['w', sampleWorker('w', { imageReadyAt: 2, startedAt: 3, readyAt: 4 })],
  ]);
  const phases = new StoredStartPhases({
    findWorker: async (_, id) => {
      reads.push(id);
      return records.get(id);
    },
  });
  const expected = { scheduledAt: 1, imageReadyAt: 2, startedAt: 3, connectedAt: 4, firstJobAt: null };
  assert.deepEqual(await phases.of('e', 'w'), expected);
  records.set('w', { ...(records.get('w') as Worker), firstJobAt: 5 });
  assert.deepEqual(await phases.of('e', 'w'), { ...expected, firstJobAt: 5 });
  assert.deepEqual(await phases.of('e', 'w'), { ...expected, firstJobAt: 5 });
  assert.equal(await phases.of('e', 'by hand'), undefined);
  assert.equal(phases.of('e', 'by hand'), undefined);
  assert.deepEqual(reads, ['w', 'w', 'by hand']);
});

test('a job waited for the start of its worker if it was queued before that connected', () => {
  const phases = { scheduledAt: 1, imageReadyAt: 2, startedAt: 3, connectedAt: 4, firstJobAt: 5 };
  assert.equal(waitedForStart({ queuedAt: 1 }, phases), true);
  assert.equal(waitedForStart({ queuedAt: 5 }, phases), false);
  assert.equal(waitedForStart({ queuedAt: 1 }, { ...phases, connectedAt: null }), false);
});
