import assert from 'node:assert/strict';
import { describe, test, before } from 'node:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

/** Where pictures of the pages go, for whoever wants to look at them. */
const PICTURES = process.env['BERTH_TEST_PICTURES'];

for (const kind of DATABASES)
  describe(`console: pods, storage, keys and the system, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: '2x NVIDIA A40' });
    let page: Page;
    before(async () => {
      page = await fixture.signIn();
    });

    /** Opens a page by its address, waits for it and checks it for barriers. */
    const open = async (path: string, heading: string | RegExp): Promise<void> => {
      await page.goto(path);
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await waitUntilLoaded(page);
      await assertAccessible(page);
      await picture(path);
    };
    const picture = async (name: string): Promise<void> => {
      if (PICTURES === undefined) return;
      mkdirSync(PICTURES, { recursive: true });
      const file = name.replaceAll(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '');
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.screenshot({ path: join(PICTURES, `${file}-${colorScheme}.png`) });
      }
      await page.emulateMedia({ colorScheme: null });
    };
    const press = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();
    const choose = async (row: string, action: string): Promise<void> => {
      await page.getByRole('button', { name: `Actions of ${row}`, exact: true }).click();
      await page.getByRole('menuitem', { name: action, exact: true }).click();
    };

    test('every empty page says the next step', async () => {
      for (const [path, heading] of [
        ['/pods', 'Pods'],
        ['/clusters', 'Clusters'],
        ['/storage', 'Storage'],
        ['/templates', 'Templates'],
        ['/registries', 'Registries'],
        ['/secrets', 'Secrets'],
        ['/ssh-keys', 'SSH keys'],
      ] as const) {
        await open(path, heading);
        await page.locator('.empty code').first().waitFor();
      }
    });

    test('a secret is made, replaced and deleted', async () => {
      await page.goto('/secrets');
      await press('New secret');
      await page.getByLabel('Name', { exact: true }).fill('not a name!');
      await page.getByLabel('Value', { exact: true }).fill('s3cret');
      await press('Create');
      // The server's own words, and nothing typed is lost.
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('Value', { exact: true }).inputValue(), 's3cret');
      await page.getByLabel('Name', { exact: true }).fill('HF_TOKEN');
      await press('Create');
      await page.getByRole('cell', { name: 'HF_TOKEN', exact: true }).waitFor();
      assert.equal(await page.getByText('s3cret').count(), 0);
      await assertAccessible(page);
      await choose('HF_TOKEN', 'Delete');
      await page.getByText('Its value is lost').waitFor();
      await press('Delete the secret');
      await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
    });

    test('a pod is checked, deployed, looked at and terminated', async () => {
      await open('/pods/new', 'Deploy a pod');
      await page.getByRole('button', { name: /A40/ }).click();
      await page.getByLabel('Name', { exact: true }).fill('first <b>pod</b>');
      await page.getByText('It can be deployed now.').waitFor();
      await page.getByLabel('Environment variables').fill('A=1\nexport B="two"');
      await page.getByLabel('Ports').fill('8000');
      await page.getByLabel('GPUs', { exact: true }).selectOption('2');
      assert.match(page.url(), /type=NVIDIA/);
      await page.getByText('It can be deployed now.').waitFor();
      await picture('/pods/new/filled');
      await press('Deploy');
      await page.getByRole('heading', { name: 'first <b>pod</b>', level: 1 }).waitFor();
      await page.locator('.badge', { hasText: 'running' }).waitFor();
      const id = new URL(page.url()).pathname.split('/')[2] ?? '';
      const { body } = await fixture.operator.call<{ env: Record<string, string>; ports: string[] }>(
        'GET',
        `/v2/pods/${id}`,
      );
      assert.deepEqual([body.env['A'], body.env['B'], body.ports], ['1', 'two', ['8000/http']]);
      await open(`/pods/${id}`, /first/);
      assert.equal(
        await page.getByRole('link', { name: 'Open port 8000' }).getAttribute('href'),
        `/proxy/${id}-8000/`,
      );

      // All GPUs are taken now: the form says so before the click.
      await page.goto('/pods/new?type=NVIDIA+A40&count=1');
      await page.getByLabel('Name', { exact: true }).fill('second');
      await page.getByText('This would be refused now').waitFor();
      await picture('/pods/new/refused');

      await open(`/pods/${id}/logs`, /first/);
      await page.locator('.log-line', { hasText: 'berth' }).first().waitFor();
      await page.getByRole('status').filter({ hasText: '· live' }).waitFor();
      await open(`/pods/${id}/settings`, /first/);
      await page.goto(`/pods/${id}/terminal`);
      // The prompt of the shell: it reads from now on.
      await page.locator('.xterm-rows', { hasText: /[#$]/ }).waitFor();
      await page.keyboard.type('echo $((6*7))\n');
      await page.locator('.xterm-rows', { hasText: '42' }).waitFor();
      await picture(`/pods/terminal`);
      await page.goto('/pods');
      await page.getByRole('link', { name: 'first <b>pod</b>' }).waitFor();
      await assertAccessible(page);
      await picture('/pods/list');
      await choose('first <b>pod</b>', 'Terminate');
      await page.getByText('Nothing of its files is kept.').waitFor();
      await press('Terminate the pod');
      await page.getByRole('heading', { name: 'No pods yet' }).waitFor();
    });

    test('files of a volume are browsed, uploaded and downloaded', async () => {
      await page.goto('/storage');
      await press('New volume');
      await page.getByLabel('Name', { exact: true }).fill('models');
      await press('Create');
      await page.getByRole('heading', { name: 'models', level: 1 }).waitFor();
      await press('New folder');
      await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('llama');
      await press('Create');
      await press('📁 llama');
      await page.getByRole('heading', { name: 'This folder is empty' }).waitFor();
      assert.match(page.url(), /path=llama/);
      const upload = (content: string): Promise<void> =>
        page
          .getByLabel('Files to upload')
          .setInputFiles({ name: 'weights ü.txt', mimeType: 'text/plain', buffer: Buffer.from(content) });
      await upload('first');
      await page.getByRole('link', { name: 'weights ü.txt' }).waitFor();
      await upload('second');
      await page.getByText('What is in weights ü.txt now is lost.').waitFor();
      await press('Replace');
      await page.getByRole('cell', { name: '6 B' }).waitFor();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'weights ü.txt' }).click(),
      ]);
      assert.equal(readFileSync((await download.path()) ?? '', 'utf8'), 'second');
      await assertAccessible(page);
      await picture('/storage/volume');
      await choose('weights ü.txt', 'Delete');
      await press('Delete the file');
      await page.getByRole('heading', { name: 'This folder is empty' }).waitFor();
    });

    test('a list of 10,000 has at most 200 rows in the document, and is searched', async () => {
      const { body } = await fixture.operator.call<{ networkVolumes: { id: string }[] }>(
        'GET',
        '/v2/network-volumes',
      );
      const id = body.networkVolumes[0]?.id ?? '';
      const folder = join(fixture.database.data, 'volumes', id, 'many');
      mkdirSync(folder);
      for (let file = 0; file < 10_000; file += 1)
        writeFileSync(join(folder, `f${String(file).padStart(5, '0')}`), '');
      await page.goto(`/storage/${id}?path=many`);
      await page.getByRole('link', { name: 'f00000' }).waitFor();
      assert.equal(await page.getByRole('table', { name: 'Files' }).getAttribute('aria-rowcount'), '10000');
      assert.ok((await page.locator('tbody tr').count()) <= 200);
      await page
        .getByRole('region', { name: 'Files' })
        .evaluate((region) => region.scrollTo(0, region.scrollHeight));
      await page.getByRole('link', { name: 'f09999' }).waitFor();
      assert.ok((await page.locator('tbody tr').count()) <= 200);
      await page.getByLabel('Search files').fill('f05000');
      await page.getByText('1 of 10,000').waitFor();
    });

    test('a key is made, shown once and revoked; its session ends without losing what is typed', async () => {
      await open('/keys', 'Keys & sessions');
      await press('New API key');
      await page.getByLabel('Name', { exact: true }).fill('reader');
      await press('Create');
      const key = (await page.getByRole('dialog').locator('code').textContent()) ?? '';
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
      const first = page;
      page = await fixture.signIn(key);
      for (const [path, heading, button] of [
        ['/secrets', 'Secrets', 'New secret'],
        ['/storage', 'Storage', 'New volume'],
        ['/keys', 'Keys & sessions', 'New API key'],
        ['/pods', 'Pods', 'Deploy a pod'],
      ] as const) {
        await page.goto(path);
        await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
        await waitUntilLoaded(page);
        // A read-only key sees no button that it may not press.
        assert.equal(await page.getByRole('button', { name: button }).count(), 0, path);
        assert.equal(await page.getByRole('link', { name: button }).count(), 0, path);
      }
      assert.equal(await page.getByRole('link', { name: 'System' }).count(), 0);
      await page.close();
      page = first;
      await page.goto('/keys');
      await choose('reader', 'Disable');
      await page.getByText('works again when it is enabled').waitFor();
      await press('Disable the key');
      const reader = page
        .getByRole('row')
        .filter({ has: page.getByRole('cell', { name: 'reader', exact: true }) });
      await reader.getByText('disabled', { exact: true }).waitFor();
      await choose('reader', 'Enable');
      await page.getByText('reader works again').waitFor();
      await reader.getByText('read-only', { exact: true }).waitFor();
      await choose('reader', 'Revoke');
      await page.getByText('Programs that use it are refused at once').waitFor();
      await press('Revoke the key');
      await page.getByRole('cell', { name: 'reader', exact: true }).waitFor({ state: 'detached' });

      await page.goto('/templates');
      await press('New template');
      await page.getByLabel('Name', { exact: true }).fill('half typed');
      await page.getByLabel('Image', { exact: true }).fill('local/shell');
      await page.context().clearCookies();
      await press('Create');
      await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
      await page.getByLabel('API key').fill(fixture.server.key);
      await press('Sign in');
      await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'half typed');
      await press('Create');
      await page.getByRole('cell', { name: 'half typed', exact: true }).waitFor();
      await assertAccessible(page);
    });

    test('billing, audit and system say what happened here', async () => {
      await open('/billing', 'Billing');
      await press('Pods');
      await page.locator('.u-over').waitFor();
      assert.match(page.url(), /by=pod/);
      await picture('/billing/pods');
      const [csv] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Export CSV' }).click(),
      ]);
      assert.match(readFileSync((await csv.path()) ?? '', 'utf8'), /^startTime,/);

      await open('/audit?resource=secret', 'Audit log');
      await page.getByRole('cell', { name: 'create' }).first().waitFor();
      assert.equal(await page.getByRole('cell', { name: /^pod / }).count(), 0);
      await page
        .getByRole('button', { name: /Details of entry/ })
        .first()
        .click();
      await page.getByRole('dialog').getByText('Request').waitFor();
      await page.waitForURL(/entry=/);
      await page.reload();
      await page.getByRole('dialog').getByText('Request').waitFor();
      // An entry that is not in the list is shown too: the first one made the account.
      await page.goto('/audit?resource=secret&entry=1');
      await page.getByRole('dialog').getByText('account root').waitFor();
      await page.keyboard.press('Escape');

      await open('/system', 'System');
      await page.getByRole('cell', { name: 'NVIDIA A40 (virtual)' }).waitFor();
      await page.getByRole('cell', { name: 'data folder' }).waitFor();
      // Where there may be several.
      if (kind !== 'postgres') return;
      const servers = page.getByRole('table', { name: 'Servers' });
      await servers.getByText('leader', { exact: true }).waitFor();
      assert.equal(await servers.locator('tbody tr').count(), 1);
    });

    test('on a phone nothing is wider than the screen', async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      for (const path of ['/pods/new', '/billing', '/system', '/keys', '/audit']) {
        await page.goto(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await waitUntilLoaded(page);
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, path);
        await picture(`${path}/phone`);
      }
    });
  });
