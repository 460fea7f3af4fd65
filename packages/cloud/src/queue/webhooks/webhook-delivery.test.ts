import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { newJob } from '../job-submission.ts';
import { afterAttempt, deliveryOf, isAccepted, nextAttemptNumber, redelivery } from './webhook-delivery.ts';
import type { AttemptOutcome } from './webhook-delivery.ts';
import { webhookBody } from './webhook-payload.ts';

const NOW = 1_700_000_000_000;
const RULES = { attempts: 3, pause: 10_000 };
const endpoint = {
  id: 'e1',
  accountId: 'owner',
  executionTimeout: 0,
  jobTtl: 1000,
  retention: null,
  maxRetries: 1,
};
const { job, payloads } = newJob(
  endpoint,
  'caller',
  '{"input":1}',
  { webhook: 'https://hooks.example/' },
  7,
  NOW,
);
const fresh = deliveryOf({ ...job, status: 'COMPLETED', endedAt: NOW }, payloads, 'd1', NOW);

const outcomes: fc.Arbitrary<AttemptOutcome> = fc.oneof(
  fc.integer({ min: 200, max: 599 }).map((status) => ({ status })),
  fc.string({ maxLength: 400 }).map((error) => ({ error })),
);

test('a new delivery belongs to the submitter of the job, and is due immediately', () => {
  assert.deepEqual(fresh, {
    id: 'd1',
    endpointId: 'e1',
    accountId: 'caller',
    jobId: job.id,
    url: 'https://hooks.example/',
    body: webhookBody({ ...job, status: 'COMPLETED', endedAt: NOW }, payloads),
    attempts: 0,
    nextAt: NOW,
    state: 'pending',
    lastStatus: null,
    lastError: null,
    createdAt: NOW,
    updatedAt: NOW,
  });
});

test('any 2xx is success, everything else is not', () => {
  for (const status of [200, 201, 204, 299]) assert.ok(isAccepted({ status }));
  for (const status of [100, 199, 300, 302, 400, 404, 500, 503]) assert.ok(!isAccepted({ status }));
  assert.ok(!isAccepted({ error: '200' }));
});

test('says what the receiver answered, and that redirects are not followed', () => {
  assert.equal(afterAttempt(fresh, { status: 500 }, RULES, NOW).lastError, 'the receiver answered 500');
  assert.equal(
    afterAttempt(fresh, { status: 302 }, RULES, NOW).lastError,
    'the receiver answered 302; redirects are not followed',
  );
  const failed = afterAttempt(fresh, { error: 'unreachable' }, RULES, NOW);
  assert.deepEqual([failed.lastStatus, failed.lastError], [null, 'unreachable']);
  const delivered = afterAttempt(failed, { status: 201 }, RULES, NOW);
  assert.deepEqual([delivered.lastStatus, delivered.lastError], [201, null]);
});

test('a series continues until it is accepted or its attempts are used up', async () => {
  await checkProperty(
    fc.property(
      fc.array(outcomes, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(60_000),
      (answers, attempts, pause) => {
        const rules = { attempts, pause };
        let delivery = fresh;
        let now = NOW;
        for (const outcome of answers) {
          const next = afterAttempt(delivery, outcome, rules, now);
          assert.equal(next.attempts, delivery.attempts + 1);
          assert.equal(next.state === 'pending', next.nextAt !== null);
          assert.equal(next.state === 'delivered', isAccepted(outcome));
          if (next.state === 'pending') assert.equal(next.nextAt, now + pause);
          assert.deepEqual(
            [next.id, next.body, next.url, next.createdAt],
            [fresh.id, fresh.body, fresh.url, fresh.createdAt],
          );
          assert.ok((next.lastError ?? '').length <= 300);
          if (next.state !== 'pending')
            return assert.ok(next.state === 'delivered' || next.attempts === attempts);
          delivery = next;
          now += pause;
        }
        assert.ok(delivery.attempts < attempts);
      },
    ),
  );
});

test('a redelivery of a failed delivery has a whole series again, and attempt numbers continue', () => {
  let delivery = fresh;
  for (let attempt = 1; attempt <= 3; attempt += 1)
    delivery = afterAttempt(delivery, { status: 500 }, RULES, NOW);
  assert.equal(delivery.state, 'failed');
  delivery = redelivery(delivery, NOW + 5);
  assert.deepEqual(
    [delivery.state, delivery.nextAt, delivery.attempts, delivery.id],
    ['pending', NOW + 5, 3, 'd1'],
  );
  const states = [4, 5, 6].map(() => (delivery = afterAttempt(delivery, { status: 500 }, RULES, NOW)).state);
  assert.deepEqual(states, ['pending', 'pending', 'failed']);
});

test('a redelivery has all its attempts, whenever the last series was accepted, and no number repeats', async () => {
  await checkProperty(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }),
      (attempts, acceptedAt) => {
        const rules = { attempts, pause: 10 };
        const numbers: number[] = [];
        let delivery = fresh;
        for (const accepted of acceptedAt) {
          let made = 0;
          while (delivery.state === 'pending') {
            numbers.push(nextAttemptNumber(delivery, rules));
            made += 1;
            delivery = afterAttempt(delivery, { status: made === accepted ? 200 : 500 }, rules, NOW);
            assert.equal(delivery.attempts, numbers.at(-1));
          }
          assert.equal(made, accepted >= 1 && accepted <= attempts ? accepted : attempts);
          assert.equal(delivery.state, accepted >= 1 && accepted <= attempts ? 'delivered' : 'failed');
          delivery = redelivery(delivery, NOW);
          assert.deepEqual(
            [delivery.state, delivery.attempts, delivery.lastStatus, delivery.lastError],
            ['pending', numbers.at(-1), null, null],
          );
        }
        assert.deepEqual(
          numbers,
          [...new Set(numbers)].sort((a, b) => a - b),
        );
        assert.equal(numbers[0], 1);
      },
    ),
  );
});

test('a pending delivery is not changed by a redelivery', () => {
  assert.equal(redelivery(fresh, NOW + 5), fresh);
});
