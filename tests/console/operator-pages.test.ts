import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import type { TestAccount } from '../../packages/testing/src/server-fixture.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** What an hour costs, so much that seconds show. */
const PRICES = 'prices: { cpu: { cpu3c: 1000 }, disk: { networkVolume: 100 } }\n';

for (const kind of DATABASES)
  describe(`console: billing and the system, ${kind}`, { skip: withoutBrowser() }, () => {
    const folder = createTemporaryFolder('operator', { 'berth.yaml': PRICES });
    after(() => folder.remove());
    const backups = join(folder.path, 'backups');
    const fixture = consoleFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_PROCESS_ISOLATION: 'none',
      BERTH_CONFIG: join(folder.path, 'berth.yaml'),
      BERTH_BACKUP_TARGET: backups,
    });
    let page: Page;
    let ann: TestAccount;
    let endpoint: string;
    let pod: string;
    before(async () => {
      ann = await fixture.createAccount('ann');
      endpoint = await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint('costly', 'local/echo'),
      );
      await fixture.operator.call('POST', `/v2/${endpoint}/runsync?wait=60000`, { input: {} });
      pod = await createResource(ann, '/v2/pods', {
        name: 'hers',
        image: 'local/shell',
        args: 'sleep 1000',
        cpu: CPU_HARDWARE,
      });
      await createResource(fixture.operator, '/v2/network-volumes', {
        name: 'models',
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      const costs = async (client: TestAccount | typeof fixture.operator, path: string): Promise<boolean> => {
        const { body } = await client.call<{ records: { totalAmount?: number }[] }>('GET', path);
        return body.records.some(({ totalAmount = 0 }) => totalAmount > 0.01);
      };
      await waitFor('the pod costs', () => costs(ann, '/v2/billing/pods?lastN=1'));
      await waitFor('the endpoint costs', () => costs(fixture.operator, '/v2/billing/serverless?lastN=1'));
      page = await fixture.signIn();
    });

    const open = async (path: string, heading: string, on = page): Promise<void> => {
      await on.goto(path);
      await on.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await waitUntilLoaded(on);
    };
    const press = (name: string, on = page) => on.getByRole('button', { name, exact: true }).click();
    const rows = (label: string, on = page) =>
      on.getByRole('table', { name: label, exact: true }).locator('tbody tr');

    test('costs by endpoint, volume and account; each view has its address and its export', async () => {
      await open('/billing', 'Billing');
      await page.locator('.u-over').waitFor();
      await press('Endpoints');
      await rows('Costs of endpoints').filter({ hasText: endpoint }).first().waitFor();
      assert.match(await rows('Costs of endpoints').first().innerText(), /\$\d.*100 %/s);
      await press('Volumes');
      await page.waitForURL(/by=volume/);
      await press('Accounts');
      await page.waitForURL(/by=account/);
      await rows('Costs of accounts').filter({ hasText: 'ann' }).first().waitFor();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Export CSV' }).click(),
      ]);
      const csv = readFileSync((await file.path()) ?? '', 'utf8');
      assert.match(csv, /^startTime,/);
      assert.ok(csv.includes(ann.id), csv);
      await page.getByLabel('Time', { exact: true }).selectOption('7');
      await page.reload();
      await page.getByText('Per day').waitFor();
      assert.equal(await page.getByLabel('Time', { exact: true }).inputValue(), '7');
      await assertAccessible(page);
    });

    test('an account sees its own costs, and nothing of others', async () => {
      const hers = await fixture.signIn(ann.key);
      await open('/billing?by=pod', 'Billing', hers);
      await rows('Costs of pods', hers).filter({ hasText: pod }).first().waitFor();
      await press('Endpoints', hers);
      await hers.getByText('Nothing was used in this time').waitFor();
      assert.equal(await hers.getByRole('button', { name: 'Accounts' }).count(), 0);
      await open('/system', 'System', hers);
      await hers.getByRole('heading', { name: 'Only operators see this page' }).waitFor();
      await hers.context().close();
    });

    test('the system: engines, queues, checks, the version and backups', async () => {
      const paused = await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint('paused', 'local/echo', { min: 0, max: 0 }),
      );
      for (let count = 0; count < 3; count += 1)
        await fixture.operator.call('POST', `/v2/${paused}/run`, { input: {} });
      await open('/system', 'System');
      await rows('Longest queues').filter({ hasText: paused }).waitFor();
      assert.match(await rows('Longest queues').first().innerText(), /\b3\b/);
      await page.getByRole('heading', { name: /^LOCAL-1/ }).waitFor();
      await page.getByText('1 pod, ').waitFor();
      await rows('Checks').first().waitFor();
      const { body } = await fixture.operator.call<{ version: string }>('GET', '/v2/system');
      await page.getByText(body.version, { exact: true }).first().waitFor();
      await page.getByText(kind === 'sqlite' ? 'SQLite' : 'PostgreSQL', { exact: true }).waitFor();
      // The first backup is made soon after the start.
      await waitFor(
        'a backup',
        async () => {
          await page.reload();
          await waitUntilLoaded(page);
          return page.getByText('succeeded', { exact: true }).isVisible();
        },
        60_000,
      );
      await page.locator('code', { hasText: backups }).waitFor();
      await assertAccessible(page);
    });
  });
