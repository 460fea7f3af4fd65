import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloudEvents } from '../../domain/events.ts';
import { EventBus } from '../../support/event-bus.ts';
import { QuotaWarnings } from './quota-warnings.ts';

test('a limit is announced at 80 %, at 100 %, and again after it fell back', async () => {
  let ratio = 0;
  const events = new EventBus<CloudEvents>();
  const announced: number[] = [];
  events.subscribe('quota.warning', (warning) => announced.push(warning.ratio));
  const warnings = new QuotaWarnings(
    { ratios: async () => [{ account: 'a', limit: 'pods', used: ratio, maximum: 1, ratio }] },
    events,
  );
  for (ratio of [0.5, 0.8, 0.9, 1, 1, 0.9, 0.2, 0.85]) await warnings.check();
  assert.deepEqual(announced, [0.8, 1, 0.85]);
});
