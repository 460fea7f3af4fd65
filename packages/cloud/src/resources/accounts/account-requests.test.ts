import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QuotaLimits } from '../../domain/quotas.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { AccountRequests } from './account-requests.ts';

function create(installationLimits: QuotaLimits, own: Record<string, QuotaLimits>) {
  const clock = new ManualClock();
  const published: string[] = [];
  const requests = new AccountRequests({
    directory: { installationLimits, limitsOf: (accountId) => own[accountId] ?? {} },
    clock,
    share: { publish: (key) => void published.push(key), subscribe: () => undefined },
  });
  return { clock, published, requests };
}

describe('requests of accounts', () => {
  test('are counted a minute at a time, and the refusal says when to come back', () => {
    const { clock, requests } = create({}, { ann: { requests: 2 } });
    requests.count('ann');
    clock.advance(20_000);
    requests.count('ann');
    assert.equal(requests.used('ann'), 2);
    assert.throws(
      () => requests.count('ann'),
      (error) =>
        error instanceof BerthError &&
        error.code === 'rate' &&
        error.headers['retry-after'] === '40' &&
        error.limit?.name === 'requests' &&
        /try again in 40 s/.test(error.message),
    );
    clock.advance(40_000);
    assert.equal(requests.used('ann'), 0);
    requests.count('ann');
  });

  test('of an account without a limit are neither counted nor told to other servers', () => {
    const { published, requests } = create({}, { ann: { requests: 2 } });
    requests.count('bob');
    assert.equal(requests.used('bob'), 0);
    assert.deepEqual(published, []);
  });

  test('that an account may not send use up nothing of the installation', () => {
    const { requests } = create({ requests: 3 }, { ann: { requests: 1 } });
    requests.count('ann');
    for (let call = 0; call < 9; call += 1) assert.throws(() => requests.count('ann'), /of this account/);
    requests.count('bob');
    requests.count('bob');
    assert.throws(() => requests.count('bob'), /of this installation/);
    assert.equal(requests.used(undefined), 3);
    requests.count('root');
  });
});
