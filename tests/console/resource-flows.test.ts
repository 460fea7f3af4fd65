import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';

for (const kind of DATABASES)
  describe(`console: templates, registries, SSH keys, volumes, pods and clusters, ${kind}`, {
    skip: withoutBrowser(),
  }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: '4x NVIDIA A40' });
    let page: Page;
    before(async () => {
      page = await fixture.signIn();
    });

    const open = async (path: string, heading: string): Promise<void> => {
      await page.goto(path);
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await waitUntilLoaded(page);
    };
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    const field = (name: string) => page.getByLabel(name, { exact: true });
    const cell = (name: string) => page.getByRole('cell', { name, exact: true });
    const choose = async (row: string, action: string): Promise<void> => {
      await page.getByRole('button', { name: `Actions of ${row}`, exact: true }).click();
      await page.getByRole('menuitem', { name: action, exact: true }).click();
    };
    const read = async <T>(path: string): Promise<T> => (await fixture.operator.call<T>('GET', path)).body;

    test('a template is made, changed and deployed; its pod is changed, stopped and started', async () => {
      await open('/templates', 'Templates');
      await press('New template');
      await field('Name').fill('shell');
      await field('Image').fill('local/shell');
      await field('Command').fill('sleep 1000');
      await field('Ports').fill('no port');
      await press('Create');
      await page.getByRole('alert').getByText('is not a port such as').waitFor();
      await field('Ports').fill('8000/http');
      await field('Environment variables').fill('A=1');
      await press('Create');
      await cell('shell').waitFor();
      await choose('shell', 'Edit');
      await field('Environment variables').fill('A=2');
      await press('Save');
      await page.getByRole('dialog').waitFor({ state: 'detached' });

      await page.getByRole('link', { name: 'Deploy', exact: true }).click();
      await press('CPU');
      await page.getByRole('button', { name: /cpu3c/ }).click();
      await field('What is kept').selectOption('persistent');
      await field('Volume, GB').fill('10');
      await page.getByText('a CPU pod has no persistent mount; use a network volume').waitFor();
      await press('GPU');
      await page.getByRole('button', { name: /A40/ }).click();
      await page.getByText('It can be deployed now.').waitFor();
      assert.equal(await field('Environment variables').inputValue(), 'A=2');
      await press('Deploy');
      await page.getByRole('heading', { name: 'shell', level: 1 }).waitFor();
      await page.locator('.badge', { hasText: 'running' }).waitFor();
      const id = new URL(page.url()).pathname.split('/')[2] ?? '';
      type Pod = { env: Record<string, string>; name: string; mounts: { persistent?: { size: number } } };
      assert.equal((await read<Pod>(`/v2/pods/${id}`)).mounts.persistent?.size, 10);

      await open(`/pods/${id}/settings`, 'shell');
      assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), true);
      await field('Name').fill('shell 2');
      await field('Environment variables').fill('A=3');
      await page.getByText('This restarts the pod').waitFor();
      await press('Save and restart');
      await page.getByRole('heading', { name: 'shell 2', level: 1 }).waitFor();
      const { env } = await read<Pod>(`/v2/pods/${id}`);
      assert.equal(env['A'], '3');
      await page.goto('/pods');
      await choose('shell 2', 'Stop');
      await page.getByText('The volume at /workspace (10 GB) stays.').waitFor();
      await press('Stop the pod');
      await page.locator('.badge', { hasText: 'exited' }).waitFor();
      await choose('shell 2', 'Start');
      await press('Start');
      await page.locator('.badge', { hasText: 'running' }).waitFor();
      await choose('shell 2', 'Terminate');
      // A volume goes with it, so the name is asked for.
      const terminate = page.getByRole('button', { name: 'Terminate the pod' });
      assert.equal(await terminate.isDisabled(), true);
      await field('Type shell 2 to go on').fill('shell 2');
      await terminate.click();
      await page.getByRole('heading', { name: 'No pods yet' }).waitFor();

      await open('/templates', 'Templates');
      await choose('shell', 'Delete');
      await page.getByText('The settings are lost').waitFor();
      await press('Delete the template');
      await page.getByRole('heading', { name: 'No templates yet' }).waitFor();
    });

    test('a registry is saved, its password never shown, and deleted', async () => {
      await open('/registries', 'Registries');
      await press('New registry');
      await field('Name').fill('ghcr');
      await field('User name').fill('me');
      await field('Password or token').fill('hunter2');
      await press('Save');
      await cell('ghcr').waitFor();
      assert.doesNotMatch(await page.content(), /hunter2/);
      await assertAccessible(page);
      await choose('ghcr', 'Delete');
      await press('Delete the registry');
      await page.getByRole('heading', { name: 'No registries yet' }).waitFor();
    });

    test('SSH keys are added and removed; what is none is refused in words', async () => {
      await open('/ssh-keys', 'SSH keys');
      await press('Add a key');
      await field('Public key').fill('no key');
      await press('Add');
      await page.getByRole('alert').waitFor();
      assert.equal(await field('Public key').inputValue(), 'no key');
      await field('Public key').fill(`${SSH_KEY} me@laptop`);
      await press('Add');
      await cell('me@laptop').waitFor();
      await choose('me@laptop', 'Remove');
      await press('Remove the key');
      await page.getByRole('heading', { name: 'No SSH keys yet' }).waitFor();
    });

    test('a volume is renamed, grown, and deleted by its name', async () => {
      await open('/storage', 'Storage');
      await press('New volume');
      await field('Name').fill('models');
      await press('Create');
      await page.getByRole('heading', { name: 'models', level: 1 }).waitFor();
      await open('/storage', 'Storage');
      await choose('models', 'Rename or grow');
      await field('Name').fill('weights');
      await field('Size, GB').fill('25');
      await press('Save');
      await page.getByRole('link', { name: 'weights', exact: true }).waitFor();
      const { networkVolumes } = await read<{ networkVolumes: { size: number }[] }>('/v2/network-volumes');
      assert.equal(networkVolumes[0]?.size, 25);
      await choose('weights', 'Delete');
      const remove = page.getByRole('button', { name: 'Delete the volume' });
      assert.equal(await remove.isDisabled(), true);
      await field('Type weights to go on').fill('weights');
      await remove.click();
      await page.getByRole('heading', { name: 'No network volumes yet' }).waitFor();
    });

    test('a cluster is made, opened and deleted', async () => {
      await open('/clusters', 'Clusters');
      await press('New cluster');
      await field('Name').fill('train');
      await field('GPUs of each pod').fill('2');
      await press('Create');
      await page.getByRole('heading', { name: 'train', level: 1 }).waitFor();
      const pods = page.getByRole('table', { name: 'Pods of the cluster' }).locator('tbody tr');
      await pods.nth(1).waitFor();
      await page.locator('.badge', { hasText: 'running' }).nth(1).waitFor();
      await assertAccessible(page);
      await open('/clusters', 'Clusters');
      await choose('train', 'Delete');
      await page.getByText('Its 2 pods with their disks').waitFor();
      await field('Type train to go on').fill('train');
      await press('Delete the cluster');
      await page.getByRole('heading', { name: 'No clusters yet' }).waitFor();
    });

    test('an S3 key is shown once and revoked; another browser is signed out', async () => {
      await open('/keys', 'Keys & sessions');
      await press('New S3 key');
      await field('Name').fill('backup');
      await field('May do').selectOption('ALL');
      await press('Create');
      const shown = page.getByRole('dialog', { name: 'Copy it now' });
      await shown.waitFor();
      const [accessId = '', secret = ''] = await shown.locator('code').allInnerTexts();
      assert.ok(accessId.length > 10 && secret.length > 20);
      await shown.getByRole('button', { name: 'Close' }).click();
      await cell('backup').waitFor();
      assert.doesNotMatch(await page.content(), new RegExp(secret));
      await choose('backup', 'Revoke');
      await page.getByText('S3 clients that use it are refused at once').waitFor();
      await press('Revoke the key');
      await page.getByRole('heading', { name: 'No S3 keys' }).waitFor();

      const other = await fixture.signIn();
      await page.reload();
      const sessions = page.getByRole('table', { name: 'Sessions' }).locator('tbody tr');
      await sessions.nth(1).waitFor();
      await sessions.filter({ hasNotText: 'this one' }).getByRole('button').click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
      await sessions.nth(1).waitFor({ state: 'detached' });
      await other.goto('/pods');
      await other.getByRole('heading', { name: 'Sign in to Berth' }).waitFor();
      await other.context().close();
    });
  });
