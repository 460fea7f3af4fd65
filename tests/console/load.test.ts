import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { RowCopier } from '../../packages/testing/src/copy-rows.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import type { DatabaseKind } from '../../packages/testing/src/test-database.ts';
import { skipUnlessLong } from '../../packages/testing/src/test-tier.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const PODS = 10_000;
const ENDPOINTS = 2_000;
const JOBS = 1_000_000;
const MAX_ROWS = 200;
/** No answer is larger, whatever the account has. */
const MAX_ANSWER_BYTES = 2_000_000;

/** On PostgreSQL it takes the better part of a minute. */
function reasonToSkip(kind: DatabaseKind): string | false {
  const tooLong = kind === 'postgres' ? skipUnlessLong : undefined;
  return withoutBrowser() || (tooLong ?? false);
}

for (const kind of DATABASES)
  describe(`console: an account with very much in it, ${kind}`, { skip: reasonToSkip(kind) }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let endpointId: string;
    const sizes = new Map<string, number>();

    before(async () => {
      endpointId = await create('/v2/serverless', queueEndpoint('busy', 'local/echo', { min: 0, max: 0 }));
      await fixture.operator.call('POST', `/v2/${endpointId}/run`, { input: { castle: 1 } });
      const pod = await create('/v2/pods', {
        name: 'stopped',
        image: 'local/shell',
        args: 'sleep 1000',
        cpu: CPU_HARDWARE,
      });
      await waitFor('the pod runs', async () => (await statusOf(pod)) === 'RUNNING');
      await fixture.operator.call('POST', `/v2/pods/${pod}/action`, { action: 'stop' });
      await waitFor('the pod is stopped', async () => (await statusOf(pod)) === 'EXITED');
      await fixture.restart(async () => {
        const copier = await RowCopier.open(fixture.database);
        await copier.copyResources('endpoints', endpointId, ENDPOINTS - 1, 'endpoint ');
        await copier.copyResources('pods', pod, PODS - 1, 'pod ');
        await copier.copyWaitingJob(endpointId, JOBS - 1);
        await copier.close();
      });
      page = await fixture.signIn();
      page.on('response', (response) => {
        if (response.url().includes('/v2/') && response.headers()['content-type']?.includes('json') === true)
          void response.body().then(
            (body) => sizes.set(response.url(), body.length),
            () => undefined,
          );
      });
    });

    const create = (path: string, body: unknown): Promise<string> =>
      createResource(fixture.operator, path, body);
    async function statusOf(podId: string): Promise<string> {
      return (await fixture.operator.call<{ status: string }>('GET', `/v2/pods/${podId}`)).body.status;
    }
    /** The whole list is there, a few of its rows are in the document, and the rest appears by scrolling. */
    async function scrollToEnd(label: string, rows: number): Promise<void> {
      await page.locator(`table[aria-label="${label}"][aria-rowcount="${rows}"]`).waitFor();
      const region = page.getByRole('region', { name: label });
      const first = await region.locator('tbody tr:not(.spacer)').first().innerText();
      await region.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await waitFor('other rows', async () => {
        const shown = region.locator('tbody tr:not(.spacer)');
        assert.ok((await shown.count()) <= MAX_ROWS);
        return (await shown.last().innerText()) !== first;
      });
    }

    test('the overview counts all of it', async () => {
      await page.goto('/');
      await page.getByRole('heading', { name: 'Needs you now' }).waitFor();
      const stats = await page.locator('.stats').innerText();
      for (const count of ['2,000', '1,000,000', '10,000 in all']) assert.ok(stats.includes(count), stats);
      await page.getByText('1,000,000 jobs waiting; it may have no workers').waitFor();
    });

    test('2,000 endpoints are listed, scrolled and searched', async () => {
      await page.goto('/serverless');
      await scrollToEnd('Endpoints', ENDPOINTS);
      await page.getByLabel('Search the endpoints').fill('endpoint 1777');
      await page.getByRole('link', { name: 'endpoint 1777', exact: true }).click();
      await page.getByRole('heading', { name: 'endpoint 1777', level: 1 }).waitFor();
    });

    test('10,000 pods are listed, scrolled and searched', async () => {
      await page.goto('/pods');
      await scrollToEnd('Pods', PODS);
      await page.getByLabel('Search pods').fill('pod 9876');
      await page.getByText('1 of 10,000').waitFor();
      await page.getByRole('link', { name: 'pod 9876', exact: true }).click();
      await page.getByRole('heading', { name: 'pod 9876', level: 1 }).waitFor();
    });

    test('1,000,000 requests are paged, filtered and opened', async () => {
      await page.goto(`/serverless/${endpointId}/requests`);
      const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr:not(.spacer)');
      await rows.first().waitFor();
      const newest = await rows.first().innerText();
      await page.getByRole('button', { name: 'Older' }).click();
      await waitFor('the next page', async () => (await rows.first().innerText()) !== newest);
      assert.ok((await rows.count()) <= MAX_ROWS);
      await page.getByLabel('Text in the input').fill('castle');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(/text=/);
      await rows.first().getByRole('button').click();
      const job = page.getByRole('dialog', { name: /^Job / });
      await job.getByText('Why it waits').waitFor();
      assert.match(await job.getByLabel('Input', { exact: true }).innerText(), /castle/);
    });

    test('the limits say about how much of the queue is used, without counting it', async () => {
      await page.goto('/billing');
      const row = page.getByRole('table', { name: 'Limits' }).getByRole('row');
      await row.filter({ hasText: 'about' }).first().waitFor();
      assert.match(await row.filter({ hasText: '1,000,000' }).first().innerText(), /1,000,000/);
      const { body } = await fixture.operator.call<{
        limits: { name: string; used: number; estimated: boolean }[];
      }>('GET', '/v2/account/limits');
      const { used = 0, estimated } = body.limits.find(({ name }) => name === 'queuedBytes') ?? {};
      assert.deepEqual([used % JOBS, used / JOBS > 10, estimated], [0, true, true]);
      await waitUntilLoaded(page);
    });

    test('every other list opens', async () => {
      for (const [path, heading] of [
        ['/clusters', 'Clusters'],
        ['/storage', 'Storage'],
        ['/templates', 'Templates'],
        ['/audit', 'Audit log'],
        ['/keys', 'Keys & sessions'],
        ['/system', 'System'],
      ] as const) {
        await page.goto(path);
        await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
        await waitUntilLoaded(page);
        assert.deepEqual(await page.getByRole('alert').allInnerTexts(), [], path);
      }
    });

    test('no answer of the API grows with the account', () => {
      const large = [...sizes].filter(([, bytes]) => bytes > MAX_ANSWER_BYTES);
      assert.deepEqual(large, []);
      assert.ok(sizes.size > 10);
    });
  });
