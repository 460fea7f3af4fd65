import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import type { TestAccount } from '../../packages/testing/src/server-fixture.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

for (const kind of DATABASES)
  describe(`console: audit log, limits, keys and registries, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    before(async () => {
      page = await fixture.signIn();
    });

    const open = async (path: string, heading: string, on = page): Promise<void> => {
      await on.goto(path);
      await on.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await waitUntilLoaded(on);
    };
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    const field = (name: string) => page.getByLabel(name, { exact: true });
    const choose = async (row: string, action: string): Promise<void> => {
      await page.getByRole('button', { name: `Actions of ${row}`, exact: true }).click();
      await page.getByRole('menuitem', { name: action, exact: true }).click();
    };
    const rowOf = (table: string, text: string, on = page) =>
      on.getByRole('table', { name: table, exact: true }).locator('tbody tr', { hasText: text });

    test('the audit log is filtered by key, action, kind, id, time and account; the address keeps it', async () => {
      const ci = await fixture.operator.call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
        name: 'ci',
        access: 'ALL',
      });
      const template = await createResource(fixture.operator, '/v2/templates', { name: 'one', image: 'a:1' });
      const other = await createResource(fixture.operator, '/v2/templates', { name: 'two', image: 'a:1' });
      await fixture.client(ci.body.key).call('DELETE', `/v2/templates/${other}`);
      await (await fixture.createAccount('elsewhere')).call('POST', '/v2/templates', {
        name: 'theirs',
        image: 'a:1',
      });

      await open('/audit', 'Audit log');
      const rows = page.getByRole('table', { name: 'Audit log' }).locator('tbody tr');
      const shows = (what: string, matches: (texts: string[]) => boolean): Promise<unknown> =>
        waitFor(what, async () => matches(await rows.allInnerTexts()));
      const all = (pattern: RegExp, count?: number) => (texts: string[]) =>
        texts.length > 0 &&
        (count === undefined || texts.length === count) &&
        texts.every((text) => pattern.test(text));
      await field('Kind').selectOption('template');
      await shows('templates', all(/template/, 3));
      await field('Action').selectOption('delete');
      await shows('what was deleted', all(/delete[^]*template/, 1));
      await field('Action').selectOption('');
      await field('Key id').fill(ci.body.id);
      await shows('what the key did', all(/ci/, 1));
      await page.waitForURL(/actor=/);
      await page.reload();
      await shows('the same', all(/ci/, 1));
      await field('Key id').fill('');
      await field('Resource id').fill(template);
      await shows('one template', all(new RegExp(template), 1));
      // A day on either side: the time of the field is that of the browser.
      const days = (count: number): string =>
        new Date(Date.now() + count * 86_400_000).toISOString().slice(0, 16);
      await field('From').fill(days(1));
      await page.getByRole('heading', { name: 'Nothing is recorded for this' }).waitFor();
      await field('From').fill(days(-1));
      await field('Until').fill(days(1));
      await shows('it again', all(new RegExp(template), 1));
      await field('Until').fill(days(-1));
      await page.getByRole('heading', { name: 'Nothing is recorded for this' }).waitFor();
      await open('/audit?resource=template', 'Audit log');
      await field('Account').fill('all');
      await shows('those of all accounts', (texts) => texts.length === 4);
      await page.getByRole('columnheader', { name: 'Account' }).waitFor();
      await assertAccessible(page);
    });

    test('an operator sets limits of an account; who nears one sees it before being refused', async () => {
      const ann = await fixture.createAccount('ann');
      await open('/billing', 'Billing');
      await choose('ann', 'Set a limit');
      await field('Limit').selectOption('pods');
      await field('At most').fill('2');
      await press('Set');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await choose('ann', 'Set a limit');
      await waitFor('the limit of now', async () => (await field('At most').inputValue()) === '2');
      await field('Limit').selectOption('volumeBytes');
      assert.equal(await field('At most').inputValue(), '');
      await field('At most').fill('plenty');
      await press('Set');
      await page.getByRole('alert').getByText('plenty is no size such as 500 MB').waitFor();
      await field('At most').fill('20 GB');
      await assertAccessible(page);
      await press('Set');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(await limitsOf(ann), { pods: 2, volumeBytes: 20_000_000_000 });

      await createResource(ann, '/v2/serverless', queueEndpoint('hers', 'local/echo', { min: 0, max: 0 }));
      await createResource(ann, '/v2/network-volumes', { name: 'full', size: 20, dataCenter: 'LOCAL-1' });
      const hers = await fixture.signIn(ann.key);
      await open('/billing', 'Billing', hers);
      const row = rowOf('Limits', 'Bytes of volumes', hers);
      await row.getByText('near', { exact: true }).waitFor();
      assert.match(await row.innerText(), /20\.0 GB[^]*20\.0 GB/);
      assert.equal(await hers.getByRole('heading', { name: 'Accounts' }).count(), 0);
      await hers.getByRole('link', { name: 'Overview' }).click();
      await hers.getByRole('link', { name: 'Limit: Bytes of volumes' }).waitFor();
      await open('/storage', 'Storage', hers);
      await hers.getByRole('button', { name: 'New volume' }).click();
      await hers.getByLabel('Name', { exact: true }).fill('more');
      await hers.getByRole('button', { name: 'Create', exact: true }).click();
      await hers
        .getByRole('alert')
        .getByText(/the limit volumeBytes/)
        .waitFor();
      await hers.context().close();

      await choose('ann', 'Set a limit');
      await field('Limit').selectOption('volumeBytes');
      await waitFor('the limit of now', async () => (await field('At most').inputValue()) === '20 GB');
      await field('At most').fill('');
      await press('Set');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(await limitsOf(ann), { pods: 2 });
    });

    async function limitsOf(account: TestAccount): Promise<Record<string, number>> {
      type Answer = { limits: { name: string; limit: number | null }[] };
      const { body } = await account.call<Answer>('GET', '/v2/account/limits');
      return Object.fromEntries(
        body.limits.flatMap(({ name, limit }) => (limit === null ? [] : [[name, limit]])),
      );
    }

    test('a key for a single endpoint opens that one and nothing else', async () => {
      const one = await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint('one', 'local/echo', { min: 0, max: 0 }),
      );
      const two = await createResource(
        fixture.operator,
        '/v2/serverless',
        queueEndpoint('two', 'local/echo', { min: 0, max: 0 }),
      );
      await open('/keys', 'Keys & sessions');
      await press('New API key');
      await field('Name').fill('only one');
      assert.equal(await page.getByRole('group', { name: 'Endpoints' }).count(), 0);
      await field('May do').selectOption('SERVERLESS');
      await page.getByText('None chosen: all of them').waitFor();
      await page.getByRole('checkbox', { name: 'one', exact: true }).check();
      await page.getByText('Only 1 of them.').waitFor();
      await assertAccessible(page);
      await press('Create');
      const made = page.getByRole('dialog', { name: 'Copy it now' });
      const key = await made.locator('code').innerText();
      await made.getByRole('button', { name: 'Close' }).click();
      await rowOf('API keys', 'only one').getByText('calls 1 endpoint').waitFor();
      const client = fixture.client(key);
      assert.equal((await client.call('POST', `/v2/${one}/run`, { input: {} })).status, 200);
      assert.equal((await client.call('POST', `/v2/${two}/run`, { input: {} })).status, 403);
      assert.equal((await client.call('GET', '/v2/pods')).status, 403);
    });

    test('the registry of a template is chosen and taken away', async () => {
      const registry = await createResource(fixture.operator, '/v2/registries', {
        name: 'ghcr',
        username: 'me',
        password: 'hunter2',
      });
      const registryOf = async (id: string): Promise<unknown> =>
        (await fixture.operator.call<{ registry: unknown }>('GET', `/v2/templates/${id}`)).body.registry;
      const id = await createResource(fixture.operator, '/v2/templates', { name: 'private', image: 'a:1' });
      for (const chosen of [registry, null]) {
        await open('/templates', 'Templates');
        await choose('private', 'Edit');
        await page.getByRole('option', { name: 'ghcr' }).waitFor({ state: 'attached' });
        await field('Registry').selectOption(chosen ?? '');
        await press('Save');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        assert.equal(await registryOf(id), chosen);
      }
    });
  });
