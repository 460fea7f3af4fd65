import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Caller } from '../../domain/caller.ts';
import type { QuotaLimits } from '../../domain/quotas.ts';
import { createLog } from '../../support/log.ts';
import { AccountDirectory } from './account-directory.ts';
import { AccountWatch } from './account-watch.ts';
import type { SpendWarning } from './account-watch.ts';
import { LogUsage } from './log-usage.ts';
import { AccountQuotas } from './account-quotas.ts';

describe('quotas', () => {
  let context: ServiceContext;
  let directory: AccountDirectory;
  let quotas: AccountQuotas;
  let ann: Caller;
  let spent = 0;
  let images = 0;
  const sent: SpendWarning[] = [];
  let watch: AccountWatch;

  before(async () => {
    context = await createServiceContext();
    ann = await context.account('ann');
    directory = new AccountDirectory({
      store: context.store.accounts,
      events: context.events,
      configured: { account: { imageBytes: 100 }, installation: { imageBytes: 500 } },
      log: createLog({ level: 'silent', format: 'json' }),
    });
    await directory.load();
    quotas = new AccountQuotas({
      directory,
      store: context.store,
      imageBytes: async () => images,
      logBytes: async () => 0,
      requests: () => 0,
      spentThisMonth: async () => spent,
    });
    const logUsage = new LogUsage({ store: context.store, folders: [], deleteLog: async () => undefined });
    watch = new AccountWatch(context, {
      directory,
      quotas,
      logUsage,
      log: createLog({ level: 'silent', format: 'json' }),
      send: async (warning) => void sent.push(warning),
    });
  });
  after(() => context.close());

  async function setLimits(limits: QuotaLimits): Promise<void> {
    await context.store.accounts.change(ann.accountId, (current) => ({
      record: { ...current, limits },
      audit: {
        at: 0,
        accountId: ann.accountId,
        keyId: null,
        interface: 'system',
        requestId: '',
        action: 'update',
        resource: 'account',
        resourceId: ann.accountId,
        changes: [],
      },
    }));
    await directory.load();
  }

  test('the last place is given once', async () => {
    const store = async (): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      images += 40;
    };
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => quotas.within(ann.accountId, { imageBytes: 40 }, store)),
    );
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 2);
  });

  test('the defaults of the configuration are not for the root account; the installation has its own', async () => {
    images = 200;
    await quotas.check('root', { imageBytes: 1 });
    images = 260;
    await assert.rejects(quotas.check('root', { imageBytes: 1 }), {
      code: 'quota-bytes',
      limit: { name: 'imageBytes', owner: 'installation', used: 520, maximum: 500 },
    });
  });

  test('spending stops new starts, and warns once at 80 % and once at the limit', async () => {
    await setLimits({ spendPerMonth: 10, workers: 2 });
    spent = 7.9;
    await watch.check();
    assert.equal(sent.length, 0);
    spent = 8;
    await watch.check();
    await watch.check();
    assert.deepEqual(
      sent.map(({ event, spent: amount, limit }) => [event, amount, limit]),
      [['spend.warning', 8, 10]],
    );
    assert.deepEqual(await quotas.allowedWorkers(ann.accountId, 1, 0), { allowed: 1 });
    spent = 10;
    await watch.check();
    await watch.check();
    assert.equal(sent.length, 2);
    assert.equal(sent[1]?.event, 'spend.reached');
    await assert.rejects(quotas.check(ann.accountId, { spendPerMonth: 0 }), { code: 'quota-spending' });
    const { allowed, refusal } = await quotas.allowedWorkers(ann.accountId, 1, 0);
    assert.equal(allowed, 0);
    assert.match(refusal?.message ?? '', /spendPerMonth/);
    context.clock.advance(31 * 86_400_000);
    spent = 9;
    await watch.check();
    assert.equal(sent.length, 3, 'again in the next month');
  });

  test('no more workers start than the limit allows', async () => {
    await setLimits({ workers: 2 });
    const { allowed, refusal } = await quotas.allowedWorkers(ann.accountId, 5, 0);
    assert.equal(allowed, 2);
    assert.match(refusal?.message ?? '', /the limit workers/);
  });
});
