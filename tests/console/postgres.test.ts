import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';

/** What resources.test.ts does on SQLite. */
describe('console: the account and its resources on PostgreSQL', { skip: withoutBrowser() }, () => {
  const stage = consoleFixture('postgres', { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: '2x NVIDIA A40' });
  let page: Page;
  before(async () => {
    page = await stage.signIn();
  });
  const press = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();
  const open = async (path: string, heading: string): Promise<void> => {
    await page.goto(path);
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    await waitUntilLoaded(page);
    assert.equal(await page.getByRole('alert').count(), 0, path);
  };

  test('a pod is deployed, shown on the overview and terminated', async () => {
    await open('/pods/new', 'Deploy a pod');
    await page.getByRole('button', { name: /A40/ }).click();
    await page.getByLabel('Name', { exact: true }).fill('on postgres');
    await page.getByText('It can be deployed now.').waitFor();
    await press('Deploy');
    await page.locator('.badge', { hasText: 'running' }).waitFor();
    await open('/', 'Overview');
    await page.getByText('1 in all').waitFor();
    await open('/pods', 'Pods');
    await press('Actions of on postgres');
    await page.getByRole('menuitem', { name: 'Terminate' }).click();
    await press('Terminate the pod');
    await page.getByRole('heading', { name: 'No pods yet' }).waitFor();
  });

  test('a volume, a secret and a key are made', async () => {
    await open('/storage', 'Storage');
    await press('New volume');
    await page.getByLabel('Name', { exact: true }).fill('models');
    await press('Create');
    await page.getByRole('heading', { name: 'models', level: 1 }).waitFor();
    await page
      .getByLabel('Files to upload')
      .setInputFiles({ name: 'weights', mimeType: 'text/plain', buffer: Buffer.from('first') });
    await page.getByRole('link', { name: 'weights' }).waitFor();
    await open('/secrets', 'Secrets');
    await press('New secret');
    await page.getByLabel('Name', { exact: true }).fill('HF_TOKEN');
    await page.getByLabel('Value').fill('s3cret');
    await press('Create');
    await page.getByRole('cell', { name: 'HF_TOKEN', exact: true }).waitFor();
    await open('/keys', 'Keys & sessions');
    await press('New API key');
    await page.getByLabel('Name', { exact: true }).fill('reader');
    await press('Create');
    await page.getByRole('dialog').locator('code').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('cell', { name: 'reader', exact: true }).waitFor();
  });

  test('every other page opens, and the system page lists the servers', async () => {
    for (const [path, heading] of [
      ['/clusters', 'Clusters'],
      ['/templates', 'Templates'],
      ['/registries', 'Registries'],
      ['/ssh-keys', 'SSH keys'],
      ['/billing', 'Billing'],
      ['/audit', 'Audit log'],
      ['/system', 'System'],
    ] as const)
      await open(path, heading);
    const servers = page.getByRole('table', { name: 'Servers' });
    await servers.getByText('leader', { exact: true }).waitFor();
    assert.equal(await servers.locator('tbody tr').count(), 1);
    await assertAccessible(page);
  });
});
