import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import {
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { MAX_DIFFERENT_SHARE, PageSnapshots } from '../../packages/testing/src/page-snapshot.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const FOLDER = fileURLToPath(new URL('snapshots', import.meta.url));
/** They end soon, so that no picture has one. */
const WORKERS = { min: 0, max: 2, idleTimeout: 1 };
/** On a busy machine, the minute of runsync is over before a page is looked at. */
const KEPT_MS = 3_600_000;
const BROWSER = { isWhole: true };
const THEMES = ['light', 'dark'] as const;

for (const kind of DATABASES)
  describe(`console: 12 key screens look as they did, ${kind}`, { skip: withoutBrowser(BROWSER) }, () => {
    const env = { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: '2x NVIDIA A40' };
    const fixture = consoleFixture(kind, env, BROWSER);
    let snapshots: PageSnapshots;
    let page: Page;
    const ids: Record<string, string> = {};

    before(async () => {
      snapshots = new PageSnapshots(fixture.browser, FOLDER);
      ids['echo'] = await create('/v2/serverless', queueEndpoint('echo', 'local/echo', WORKERS));
      ids['failing'] = await create('/v2/serverless', queueEndpoint('thumbnails', 'local/failing', WORKERS));
      await create('/v2/serverless', queueEndpoint('chat', 'local/openai', { min: 0, max: 1 }));
      const run = (id: string | undefined, input: object): Promise<unknown> =>
        fixture.operator.call('POST', `/v2/${id}/runsync`, { input, retention: KEPT_MS });
      await run(ids['echo'], { castle: 1 });
      for (const count of [1, 2, 3]) await run(ids['failing'], { count });
      ids['pod'] = await create('/v2/pods', {
        name: 'notebook',
        image: 'local/shell',
        args: 'sleep 1000',
        cpu: CPU_HARDWARE,
        ports: ['8888/http'],
      });
      await fixture.operator.call('POST', `/v2/pods/${ids['pod']}/action`, { action: 'stop' });
      await waitFor('the pod is stopped', async () => {
        const { body } = await fixture.operator.call<{ status: string }>('GET', `/v2/pods/${ids['pod']}`);
        return body.status === 'EXITED';
      });
      ids['volume'] = await create('/v2/network-volumes', {
        name: 'models',
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      const session = await fixture.operator.call<{ key: { id: string } }>('GET', '/v2/session');
      ids['key'] = session.body.key.id;
      await create('/v2/account/secrets', { name: 'HF_TOKEN', value: 'secret' });
      await waitFor('no worker is left', async () => {
        const { body } = await fixture.operator.call<{ workers: Record<string, number> }>(
          'GET',
          '/v2/account/overview',
        );
        return Object.values(body.workers).every((count) => count === 0);
      });
      const context = await fixture.browser.newContext({
        baseURL: fixture.server.url,
        viewport: { width: 1280, height: 850 },
        deviceScaleFactor: 0.5,
        reducedMotion: 'reduce',
        // The font of the pictures is added to the page.
        bypassCSP: true,
      });
      page = await context.newPage();
    });

    const create = (path: string, body: unknown): Promise<string> =>
      createResource(fixture.operator, path, body);

    /** Opens a page in both themes and compares it. */
    async function look(name: string, path: string, ready: () => Promise<unknown>): Promise<void> {
      for (const colorScheme of THEMES) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.goto(path);
        await ready();
        await waitUntilLoaded(page);
        await snapshots.assertSame(`${name}-${colorScheme}`, page, Object.values(ids));
      }
    }
    const heading = (name: string) => () => page.getByRole('heading', { name, level: 1 }).waitFor();
    const text = (words: string | RegExp) => () => page.getByText(words).first().waitFor();

    test('login', async () => {
      await look('login', '/login', heading('Sign in to Berth'));
      await page.getByLabel('API key').fill(fixture.server.key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    });
    test('overview', () => look('overview', '/', text(/3 jobs failed/)));
    test('serverless', () =>
      look('serverless', '/serverless', () => page.getByText('0 waiting').nth(2).waitFor()));
    test('endpoint settings', () =>
      look('endpoint-settings', `/serverless/${ids['echo']}/settings`, heading('echo')));
    test('requests', () =>
      look('requests', `/serverless/${ids['failing']}/requests`, () =>
        page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(3).waitFor(),
      ));
    test('playground', () =>
      look('playground', `/serverless/${ids['echo']}/playground`, () =>
        waitFor('the last input', async () =>
          (await page.getByLabel('Body').inputValue()).includes('castle'),
        ),
      ));
    test('new endpoint', () => look('endpoint-new', '/serverless/new', heading('New endpoint')));
    test('pods', () => look('pods', '/pods', () => page.getByRole('link', { name: 'notebook' }).waitFor()));
    test('deploy a pod', () =>
      look('pod-new', '/pods/new?type=NVIDIA+A40', () =>
        page.getByRole('button', { name: /A40/ }).waitFor(),
      ));
    test('a volume', () => look('volume', `/storage/${ids['volume']}`, heading('models')));
    test('secrets', () =>
      look('secrets', '/secrets', () => page.getByRole('cell', { name: 'HF_TOKEN', exact: true }).waitFor()));
    test('keys and sessions', () => look('keys', '/keys', heading('Keys & sessions')));

    test('a page that looks different is noticed', async () => {
      await page.goto('/secrets');
      await page.getByRole('cell', { name: 'HF_TOKEN', exact: true }).waitFor();
      const before = await snapshots.take(page, []);
      await page.addStyleTag({ content: '.card { background: #b3c7e5 !important; }' });
      const { share } = await snapshots.compare(before, await snapshots.take(page, []));
      assert.ok(share > MAX_DIFFERENT_SHARE, String(share));
    });
  });
