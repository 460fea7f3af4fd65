import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** One word that no line can break by itself. */
const LONG_NAME = 'image-generator-'.repeat(6);
const WIDTHS = [360, 768, 2560];
const SIZE = { width: 1280, height: 850 };
const KEPT_MS = 3_600_000;
const LOAD_BALANCED_TABS = ['overview', 'metrics', 'workers', 'logs', 'releases', 'playground', 'settings'];

const source = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../packages/console/src/${path}`, import.meta.url)), 'utf8');

/** The addresses that the router of the console knows. */
function listRoutes(): string[] {
  const routes = [...source('router.tsx').matchAll(/(?:page\(|path: )'(\/[^']*)'/g)].map(
    ([, path = '']) => path,
  );
  assert.ok(routes.length > 20, String(routes.length));
  return routes;
}

/** The tabs that the source of a page names. */
function listTabs(path: string): string[] {
  const [, block = ''] = /^const TABS[^=]*= [[{]\n(.*?)^[\]}]/ms.exec(source(path)) ?? [];
  const tabs = [...block.matchAll(/^ {2}(?:\['(\w+)'|(\w+): \{)/gm)].map(
    ([, first, second]) => first ?? second ?? '',
  );
  assert.ok(tabs.length > 3, path);
  return tabs;
}

for (const kind of DATABASES)
  describe(`console: every page, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: '2x NVIDIA A40' });
    let page: Page;
    const foreign: string[] = [];
    const ids: Record<string, string> = {};

    const create = (path: string, body: unknown): Promise<string> =>
      createResource(fixture.operator, path, body);

    before(async () => {
      ids['queue'] = await create('/v2/serverless', queueEndpoint(LONG_NAME, 'local/echo'));
      ids['balanced'] = await create('/v2/serverless', {
        ...queueEndpoint(`balanced-${LONG_NAME}`, 'local/http-server', { min: 0, max: 1 }),
        type: 'LOAD_BALANCER',
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
      });
      const failing = await create('/v2/serverless', queueEndpoint('failing', 'local/failing'));
      for (const id of [ids['queue'], failing])
        await fixture.operator.call('POST', `/v2/${id}/runsync?wait=60000`, {
          input: { castle: LONG_NAME },
          retention: KEPT_MS,
        });
      ids['pod'] = await create('/v2/pods', {
        name: LONG_NAME,
        image: 'local/shell',
        args: 'sleep 1000',
        cpu: CPU_HARDWARE,
        ports: ['8888/http', '22/tcp'],
      });
      ids['volume'] = await create('/v2/network-volumes', {
        name: LONG_NAME,
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      ids['cluster'] = await create('/v2/clusters', {
        name: LONG_NAME,
        type: 'APPLICATION',
        image: 'local/shell',
        args: 'sleep 1000',
        compute: { gpuTypeId: 'NVIDIA A40', gpuCountPerPod: 1, podCount: 2 },
      });
      await create('/v2/templates', { name: LONG_NAME, image: 'local/shell' });
      await create('/v2/registries', { name: LONG_NAME, username: LONG_NAME, password: 'secret' });
      await create('/v2/account/secrets', { name: 'HF_TOKEN_'.repeat(5) + 'X', value: 'secret' });
      await create('/v2/account/api-keys', { name: LONG_NAME, access: 'READ_ONLY' });
      await waitFor('the pod runs', async () => {
        const { body } = await fixture.operator.call<{ status: string }>('GET', `/v2/pods/${ids['pod']}`);
        return body.status === 'RUNNING';
      });
      page = await fixture.signIn();
      page.on('request', (request) => {
        const { protocol, host } = new URL(request.url());
        if (!['data:', 'blob:'].includes(protocol) && host !== new URL(fixture.server.url).host)
          foreign.push(request.url());
      });
      // A violation that is not printed is counted too.
      await page.addInitScript(
        `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
          console.error('Content-Security-Policy', violatedDirective, blockedURI))`,
      );
    });

    /** The addresses of a route; those of tabs, once for each. */
    const addressesOf = (route: string): string[] => {
      const tabs = (of: string, names: string[]): string[] => names.map((tab) => `${of}/${tab}`);
      switch (route) {
        case '/serverless/$id':
          return [`/serverless/${ids['queue']}`, `/serverless/${ids['balanced']}`];
        case '/serverless/$id/$tab':
          return [
            ...tabs(`/serverless/${ids['queue']}`, listTabs('pages/serverless/endpoint.tsx')),
            ...tabs(`/serverless/${ids['balanced']}`, LOAD_BALANCED_TABS),
          ];
        case '/pods/$id':
          return [`/pods/${ids['pod']}`];
        case '/pods/$id/$tab':
          return tabs(`/pods/${ids['pod']}`, listTabs('pages/pod.tsx'));
        case '/clusters/$id':
          return [`/clusters/${ids['cluster']}`];
        case '/storage/$id':
          return [`/storage/${ids['volume']}`];
        default:
          assert.ok(!route.includes('$'), `${route} has no address in this test`);
          return [route];
      }
    };

    for (const route of [...listRoutes(), '/no/such/page'])
      test(`${route}: no barrier, nothing from elsewhere, as wide as the screen`, async () => {
        for (const address of addressesOf(route)) {
          await page.setViewportSize(SIZE);
          await page.goto(address);
          await page.getByRole('heading', { level: 1 }).waitFor();
          await waitUntilLoaded(page);
          if (address !== '/login') await page.getByRole('link', { name: 'Overview' }).first().waitFor();
          assert.equal(await page.getByText('There is no such tab here').count(), 0, address);
          assert.deepEqual(await page.getByRole('alert').allInnerTexts(), [], address);
          await assertAccessible(page);
          for (const width of WIDTHS) {
            await page.setViewportSize({ ...SIZE, width });
            // Charts and terminals follow a moment later.
            await waitFor(
              `${address} is at most ${width} pixels wide`,
              async () => (await page.evaluate<number>('document.documentElement.scrollWidth')) <= width,
            );
          }
          assert.deepEqual([foreign, fixture.problems], [[], []], address);
        }
      });
  });
