import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

interface Job {
  id: string;
  status: string;
  createdAt: string;
}

/** As a field for dates and times has it. */
const LOCAL_TIME_LENGTH = 'yyyy-mm-ddThh:mm'.length;
const MINUTE_MS = 60_000;

for (const kind of DATABASES)
  describe(`console: finding requests and acting on many of them, ${kind}`, {
    skip: withoutBrowser(),
  }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let endpoint: string;

    before(async () => {
      endpoint = await create('requests', { min: 0, max: 0 });
      page = await fixture.signIn();
    });

    const create = (name: string, workers: { min: number; max: number }): Promise<string> =>
      createResource(fixture.operator, '/v2/serverless', queueEndpoint(name, 'local/echo', workers));
    const submit = async (id: string, input: object): Promise<string> =>
      (await fixture.operator.call<{ id: string }>('POST', `/v2/${id}/run`, { input })).body.id;
    const jobs = async (id: string): Promise<Job[]> =>
      (await fixture.operator.call<{ jobs: Job[] }>('GET', `/v2/serverless/${id}/jobs?limit=100`)).body.jobs;
    const open = (query = ''): Promise<unknown> => page.goto(`/serverless/${endpoint}/requests${query}`);
    const table = () => page.getByRole('table', { name: 'Requests' });
    const checkboxes = () => table().getByRole('checkbox', { name: /^Select / });
    /** The ids on screen, as soon as they are these. */
    async function shows(expected: readonly string[]): Promise<void> {
      let seen: (string | null)[] = [];
      await waitFor(`the jobs ${expected.join(' ')}; last seen ${seen.join(' ')}`, async () => {
        seen = await checkboxes().evaluateAll((boxes) =>
          boxes.map((box) => box.getAttribute('aria-label')?.replace('Select ', '') ?? null),
        );
        return JSON.stringify(seen.toSorted()) === JSON.stringify([...expected].toSorted());
      });
    }
    const search = () => page.getByRole('search').getByRole('button', { name: 'Search' }).click();
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();

    test('by id, status, time and text of the input; the address keeps each, and going back takes it away', async () => {
      const [castle, tower, moat] = [
        await submit(endpoint, { word: 'castle' }),
        await submit(endpoint, { word: 'tower' }),
        await submit(endpoint, { word: 'moat' }),
      ];
      await fixture.operator.call('POST', `/v2/${endpoint}/cancel/${moat}`);
      await open();
      await shows([castle, tower, moat]);

      await page.getByLabel('Id begins with').fill(tower);
      await search();
      await shows([tower]);
      await page.waitForURL(/id=/);
      await page.reload();
      await shows([tower]);
      await press('Clear');
      await shows([castle, tower, moat]);

      await page.getByLabel('Status').selectOption('CANCELLED');
      await shows([moat]);
      await page.getByLabel('Status').selectOption('IN_QUEUE');
      await shows([castle, tower]);
      await page.getByLabel('Text in the input').fill('castle');
      await search();
      await shows([castle]);
      assert.match(page.url(), /status=IN_QUEUE.*text=castle/);

      // Each choice is a step of the browser's history; an open job is one too.
      await table().getByRole('row').nth(1).getByRole('button').click();
      const job = page.getByRole('dialog', { name: `Job ${castle}` });
      await job.waitFor();
      await page.goBack();
      await job.waitFor({ state: 'detached' });
      await shows([castle]);
      await page.goBack();
      await shows([castle, tower]);
      await page.goBack();
      await shows([moat]);
      await page.goForward();
      await shows([castle, tower]);
      assert.equal(await page.getByLabel('Status').inputValue(), 'IN_QUEUE');

      await press('Clear');
      await shows([castle, tower, moat]);
      const local = (ms: number): Promise<string> =>
        page.evaluate(`(() => {
          const time = new Date(${ms});
          return new Date(time - time.getTimezoneOffset() * ${MINUTE_MS}).toISOString().slice(0, ${LOCAL_TIME_LENGTH});
        })()`);
      const created = Date.parse((await jobs(endpoint))[0]?.createdAt ?? '');
      await page.getByLabel('Created after').fill(await local(created + 5 * MINUTE_MS));
      await search();
      await page.getByText('No job matches').waitFor();
      await page.getByLabel('Created after').fill(await local(created - 5 * MINUTE_MS));
      await page.getByLabel('Created before').fill(await local(created + 5 * MINUTE_MS));
      await search();
      await shows([castle, tower, moat]);
      assert.match(page.url(), /from=.*to=/);
      await page.getByLabel('Created after').fill('');
      await page.getByLabel('Created before').fill(await local(created - 5 * MINUTE_MS));
      await search();
      await page.getByText('No job matches').waitFor();
      await assertAccessible(page);
    });

    test('why a job waits is said, until it does not wait any more', async () => {
      const id = await submit(endpoint, { word: 'gate' });
      await open(`?job=${id}`);
      const job = page.getByRole('dialog', { name: `Job ${id}` });
      const why = job.locator('.note', { hasText: 'Why it waits' });
      const { body } = await fixture.operator.call<{ reason: string }>('GET', `/v2/${endpoint}/status/${id}`);
      assert.ok(body.reason.length > 10, body.reason);
      await why.filter({ hasText: body.reason }).waitFor();
      await assertAccessible(page);
      await fixture.operator.call('POST', `/v2/${endpoint}/cancel/${id}`);
      await job.locator('.badge', { hasText: 'cancelled' }).waitFor();
      await why.waitFor({ state: 'detached' });
    });

    test('selected jobs are cancelled, all that match are sent again; both ask first', async () => {
      endpoint = await create('bulk', { min: 0, max: 0 });
      const first = [await submit(endpoint, { group: 'a' }), await submit(endpoint, { group: 'a' })];
      const kept = await submit(endpoint, { group: 'b' });
      await open();
      await shows([...first, kept]);
      for (const id of first) await page.getByLabel(`Select ${id}`).check();
      await press('Cancel');
      const question = page.getByRole('dialog', { name: 'Cancel: 2 selected jobs?' });
      await question.getByText('Jobs that wait are dropped').waitFor();
      await assertAccessible(page);
      await question.getByRole('button', { name: 'Cancel', exact: true }).last().click();
      await page.getByText('2 jobs cancelled').waitFor();
      const statuses = async (): Promise<Record<string, string>> =>
        Object.fromEntries((await jobs(endpoint)).map(({ id, status }) => [id, status]));
      assert.deepEqual(await statuses(), {
        [first[0] ?? '']: 'CANCELLED',
        [first[1] ?? '']: 'CANCELLED',
        [kept]: 'IN_QUEUE',
      });

      await page.getByLabel('Status').selectOption('CANCELLED');
      await shows(first);
      await press('Send again');
      await page
        .getByRole('dialog', { name: 'Send again: all jobs that match?' })
        .getByRole('button', { name: 'Send again', exact: true })
        .click();
      await page.getByText('2 jobs sent again').waitFor();
      await press('Clear');
      await waitFor('the new jobs', async () => (await checkboxes().count()) === 5);
      const waiting = Object.values(await statuses()).filter((status) => status === 'IN_QUEUE');
      assert.equal(waiting.length, 3);
    });

    test('older pages are steps of the history', async () => {
      endpoint = await create('paged', { min: 0, max: 0 });
      // One more than a page has.
      for (let count = 0; count <= 100; count += 1) await submit(endpoint, { count });
      await open();
      const [newest] = await jobs(endpoint);
      await page.getByLabel(`Select ${newest?.id}`).waitFor();
      await press('Older');
      await waitFor('the oldest alone', async () => (await checkboxes().count()) === 1);
      await page.goBack();
      await page.getByLabel(`Select ${newest?.id}`).waitFor();
      assert.equal(await page.getByRole('button', { name: /^New/ }).count(), 0);
      await page.goForward();
      await waitFor('the oldest alone', async () => (await checkboxes().count()) === 1);
      await page.getByRole('button', { name: /^New/ }).click();
      await page.getByLabel(`Select ${newest?.id}`).waitFor();
    });
  });
