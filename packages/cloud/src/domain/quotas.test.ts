import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../support/errors.ts';
import { parseLimit } from '../support/config/limits.setting.ts';
import { applyQuotaChange, quotaError } from './quotas.ts';

describe('limits of accounts', () => {
  test('a refusal says which limit, how much is used, and who can raise it', () => {
    const bytes = quotaError('volumeBytes', 'account', { used: 90e9, added: 20e9, limit: 100e9 });
    assert.equal(bytes.code, 'quota-bytes');
    assert.equal(
      bytes.message,
      'the limit volumeBytes (sizes of network volumes) of this account is reached: 90.0 GB of 100.0 ' +
        'GB used, and this needs 20.0 GB more; an operator can raise it: berth account limits ACCOUNT ' +
        '--set volumeBytes=VALUE',
    );
    assert.deepEqual(bytes.limit, { name: 'volumeBytes', owner: 'account', used: 90e9, maximum: 100e9 });
    assert.equal(quotaError('pods', 'installation', { used: 3, added: 1, limit: 3 }).code, 'quota-count');
    const requests = quotaError('requests', 'account', { used: 60, added: 1, limit: 60, secondsLeft: 7 });
    assert.deepEqual([requests.code, requests.headers], ['rate', { 'retry-after': '7' }]);
    assert.match(requests.message, /60 of 60 used; try again in 7 s; an operator can raise it/);
    const spending = quotaError('spendPerMonth', 'account', { used: 12.5, added: 0, limit: 12 });
    assert.equal(spending.code, 'quota-spending');
    assert.match(spending.message, /\$12\.50 of \$12\.00 used; an operator/);
  });

  test('values are read in the unit of the limit', () => {
    assert.equal(parseLimit('queuedJobs', '1000'), 1000);
    assert.equal(parseLimit('queuedJobs', '5GB'), undefined);
    assert.equal(parseLimit('queuedBytes', '5GB'), 5e9);
    assert.equal(parseLimit('spendPerMonth', '12.50'), 12.5);
    assert.equal(parseLimit('spendPerMonth', '-1'), undefined);
  });

  test('a change sets and removes limits, and names every mistake', () => {
    assert.deepEqual(applyQuotaChange({ pods: 1, gpus: 2 }, { pods: null, workers: 0 }), {
      gpus: 2,
      workers: 0,
    });
    assert.throws(
      () => applyQuotaChange({}, { pds: 1, pods: 1.5, gpus: -1 }),
      (error) => error instanceof BerthError && error.details.length === 3,
    );
  });
});
