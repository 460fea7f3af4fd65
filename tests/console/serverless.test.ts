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
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

/** On a busy machine, the minute of runsync is over before a page is looked at. */
const KEPT_MS = 3_600_000;
const MARKUP = '<img src=x onerror="document.title=1"> Ünïcode 名前 \u202e';

for (const kind of DATABASES)
  describe(`console: the pages of serverless endpoints, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let echo: string;
    let failing: string;
    let paused: string;

    before(async () => {
      echo = await create('echo', 'local/echo');
      failing = await create(MARKUP, 'local/failing');
      paused = await create('paused', 'local/echo', { min: 0, max: 0 });
      page = await fixture.signIn();
    });

    const create = (name: string, image: string, workers?: { min: number; max: number }): Promise<string> =>
      createResource(fixture.operator, '/v2/serverless', queueEndpoint(name, image, workers));

    async function openTab(id: string, tab: string): Promise<void> {
      await page.goto(`/serverless/${id}/${tab}`);
      await page.locator('.tabs a[aria-current=page]').waitFor();
    }

    test('from the list to a first result in the playground', async () => {
      await page.goto('/serverless');
      await page.getByRole('link', { name: 'echo', exact: true }).click();
      await page.getByRole('link', { name: 'Playground' }).click();
      await page.getByLabel('Body').fill('{"input": {"castle": 1}}');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('completed', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Answer', { exact: true }).innerText(), /"castle": 1/);
      await page.getByRole('button', { name: 'Python' }).click();
      assert.match(await page.getByLabel('Program', { exact: true }).innerText(), /runpod\.Endpoint/);
      await page.getByRole('link', { name: 'details' }).click();
      const job = page.getByRole('dialog', { name: /^Job / });
      assert.match(await job.getByLabel('Input', { exact: true }).innerText(), /castle/);
      await job.getByText('Log of the job').waitFor();
      await assertAccessible(page);
    });

    test('a name with markup is text, and what fails is grouped, filtered, sent again and retried', async () => {
      for (let count = 0; count < 3; count += 1)
        await fixture.operator.call('POST', `/v2/${failing}/runsync`, {
          input: { count },
          retention: KEPT_MS,
        });
      await page.goto('/serverless');
      await page.getByRole('link', { name: '<img' }).click();
      await page.getByRole('heading', { name: '<img' }).waitFor();
      assert.match(await page.title(), /<img/);
      await openTab(failing, 'requests');
      await page.getByRole('button', { name: /Show jobs of error/ }).click();
      await page.waitForURL(/fingerprint=/);
      await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(3).waitFor();
      await page.getByLabel('Text in the input').fill('"count":1');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(/text=/);
      const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
      await waitFor('one job', async () => (await rows.count()) === 2);
      await rows.nth(1).getByRole('button').click();
      const dialog = page.getByRole('dialog', { name: /^Job / });
      await dialog.getByRole('button', { name: 'Edit and send again' }).click();
      await page.getByRole('dialog', { name: 'Send again' }).getByLabel('Input').fill('{"count": 77}');
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      await page.getByText('Sent again as a new job').waitFor();
      await page.goto(`/serverless/${failing}/requests?text=77`);
      await rows.nth(1).waitFor();
      await page.getByRole('button', { name: 'Retry' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
      await page.getByText(/1 job retried/).waitFor();
      await assertAccessible(page);
    });

    test('cancelling and retrying a job ask first, and say what is lost', async () => {
      const { body } = await fixture.operator.call<{ id: string }>('POST', `/v2/${paused}/run`, {
        input: {},
      });
      await page.goto(`/serverless/${paused}/requests?job=${body.id}`);
      const job = page.getByRole('dialog', { name: `Job ${body.id}` });
      await job.getByRole('button', { name: 'Cancel', exact: true }).click();
      const question = page.getByRole('dialog', { name: 'Cancel this job?' });
      await question.getByText('It leaves the queue and does not run').waitFor();
      await assertAccessible(page);
      await question.getByRole('button', { name: 'Keep it' }).click();
      await question.waitFor({ state: 'detached' });
      await job.getByRole('button', { name: 'Cancel', exact: true }).click();
      await question.getByRole('button', { name: 'Cancel the job' }).click();
      await job.locator('.badge', { hasText: 'cancelled' }).waitFor();

      const failed = await fixture.operator.call<{ id: string }>('POST', `/v2/${failing}/runsync`, {
        input: {},
        retention: KEPT_MS,
      });
      const path = `/serverless/${failing}/requests?job=${failed.body.id}`;
      // A key that runs jobs and only reads through REST may retry, but not change what is sent.
      const runner = await fixture.operator.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'runner',
        access: 'RESTRICTED',
        scopes: { rest: 'READ', serverless: 'WRITE' },
      });
      const other = await fixture.signIn(runner.body.key);
      await other.goto(path);
      await other.getByRole('dialog').getByRole('button', { name: 'Retry', exact: true }).waitFor();
      assert.equal(await other.getByRole('button', { name: 'Edit and send again' }).count(), 0);
      await other.context().close();

      await page.goto(path);
      await page.getByRole('button', { name: 'Edit and send again' }).waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Retry', exact: true }).click();
      const again = page.getByRole('dialog', { name: 'Retry this job?' });
      await again.getByText('Its error is forgotten').waitFor();
      await again.getByRole('button', { name: 'Retry the job' }).click();
      await page.getByText('Back in the queue').waitFor();
    });

    test('every tab opens by its address, without barriers', async () => {
      for (const tab of ['', 'metrics', 'workers', 'logs', 'releases', 'webhooks', 'settings']) {
        await openTab(echo, tab);
        await waitUntilLoaded(page);
        if (tab === 'metrics')
          for (const line of ['timed out', 'throttled'])
            await page.locator('.u-legend').getByText(line, { exact: true }).waitFor();
        assert.equal(await page.getByRole('alert').count(), 0, tab);
        await assertAccessible(page);
      }
      await page.goto('/');
      await page.getByRole('heading', { name: 'Needs you now' }).waitFor();
      await assertAccessible(page);
    });

    test('the log of a worker arrives live and is searched', async () => {
      await openTab(echo, 'logs');
      const { body } = await fixture.operator.call<{ id: string }>('POST', `/v2/${echo}/runsync`, {
        input: { tower: 'of London' },
        retention: KEPT_MS,
      });
      await page.locator('.log-line', { hasText: 'tower' }).first().waitFor();
      // A job leads to the place in the log where it began; no line is filtered out.
      await page.goto(`/serverless/${echo}/requests?job=${body.id}`);
      await page.getByRole('dialog').locator('a[href*="/logs"]').click();
      await page.waitForURL(/\/logs\?worker=.*&at=/);
      await page.locator('.log-line.start').waitFor();
      assert.equal(await page.getByLabel('Search the log').inputValue(), '');
      await page.getByLabel('Search the log').fill('nothing of the kind');
      await page.getByText(/^0 of/).waitFor();
      await page.reload();
      await page.getByText(/^0 of/).waitFor();
    });

    test('a cold start in its phases, and the log of a worker that has ended', async () => {
      const id = await createResource(fixture.operator, '/v2/serverless', {
        ...queueEndpoint('short-lived worker', 'local/echo'),
        workers: { min: 0, max: 1, idleTimeout: 1 },
      });
      await openTab(id, 'logs');
      await page.getByRole('heading', { name: 'No worker has run yet' }).waitFor();
      const job = await fixture.operator.call<{ id: string }>('POST', `/v2/${id}/runsync`, {
        input: { tower: 'of Pisa' },
        retention: KEPT_MS,
      });
      await page.goto(`/serverless/${id}/requests?job=${job.body.id}`);
      await page.getByRole('heading', { name: /^Cold start/ }).waitFor();
      for (const phase of ['Image', 'Container', 'Program until it connects', 'First job'])
        await page.getByRole('dialog').getByRole('term').filter({ hasText: phase }).waitFor();
      await waitFor(
        'no worker',
        async () => {
          const path = `/v2/serverless/${id}/workers?ended=true`;
          const { body } = await fixture.operator.call<{ workers: object[]; ended: object[] }>('GET', path);
          return body.workers.length === 0 && body.ended.length === 1;
        },
        60_000,
      );
      await openTab(id, 'logs');
      await page.getByText('No worker runs now. These are the logs').waitFor();
      await page.locator('.log-line', { hasText: 'of Pisa' }).waitFor();
      // It was read once, and nothing follows it.
      assert.match(await page.locator('.toolbar + [role=status]').innerText(), /lines$/);
      await page.getByLabel('Worker', { exact: true }).selectOption({ index: 1 });
      await page.waitForURL(/worker=/);
      await page.locator('.log-line', { hasText: 'of Pisa' }).waitFor();
      await assertAccessible(page);
    });

    test('what a running job sends appears piece by piece; its worker keeps a release waiting', async () => {
      const id = await create('streaming', 'local/streaming', { min: 0, max: 1 });
      const { body } = await fixture.operator.call<{ id: string }>('POST', `/v2/${id}/run`, {
        input: { text: 'tower moat castle '.repeat(200), pauseMs: 100 },
      });
      await page.goto(`/serverless/${id}/requests?job=${body.id}`);
      const stream = page.getByRole('dialog').getByLabel('Stream');
      await stream.filter({ hasText: 'castle' }).waitFor();
      const before = (await stream.innerText()).length;
      await waitFor('more of it', async () => (await stream.innerText()).length > before);
      await fixture.operator.call('PATCH', `/v2/serverless/${id}`, { env: { COLOUR: 'red' } });
      await openTab(id, 'releases');
      await page.getByRole('progressbar', { name: 'Rollout' }).waitFor();
      await page.getByText(/^Release 1 is rolled out: \d of \d worker/).waitFor();
      await page.goto(`/serverless/${id}/requests?job=${body.id}`);
      await fixture.operator.call('POST', `/v2/${id}/cancel/${body.id}`);
      await page.locator('.badge', { hasText: 'cancelled' }).first().waitFor();
    });

    test('a request is written as a form, made from the last input', async () => {
      await fixture.operator.call('POST', `/v2/${echo}/runsync`, {
        input: { castle: 'Leeds', towers: 4, moat: false },
        retention: KEPT_MS,
      });
      await openTab(echo, 'playground?editor=form');
      await page.getByLabel('castle', { exact: true }).fill('Bodiam');
      await page.getByLabel('towers', { exact: true }).fill('9');
      await page.getByLabel('moat', { exact: true }).check();
      await page.getByRole('button', { name: 'curl', exact: true }).click();
      const program = page.getByLabel('Program', { exact: true });
      const input = '{"castle":"Bodiam","towers":9,"moat":true}';
      assert.ok((await program.innerText()).includes(input), await program.innerText());
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByText('completed', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Answer', { exact: true }).innerText(), /"castle": "Bodiam"/);
    });

    test('the overview names failed jobs', async () => {
      const id = await create('forgetful', 'local/failing');
      await fixture.operator.call('POST', `/v2/${id}/run`, { input: {} });
      await page.goto('/');
      const concern = page.getByRole('listitem').filter({ hasText: /forgetful.*failed/ });
      await concern.getByText('1 job failed').waitFor();
    });

    test('with the keyboard alone: the navigation is skipped, and an endpoint is opened', async () => {
      await page.goto('/serverless');
      const link = page.getByRole('link', { name: 'echo', exact: true });
      await link.waitFor();
      const focused = (): Promise<string> =>
        page.evaluate('document.activeElement.id || document.activeElement.textContent');
      await page.keyboard.press('Tab');
      assert.equal(await focused(), 'Skip to content');
      await page.keyboard.press('Enter');
      await waitFor('the content', async () => (await focused()) === 'main');
      for (let pressed = 0; (await focused()) !== 'echo' && pressed < 30; pressed += 1)
        await page.keyboard.press('Tab');
      assert.equal(await focused(), 'echo');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'echo', level: 1 }).waitFor();
      await waitFor('the keyboard begins at the new page', async () => (await focused()) === 'main');
      await page.getByText('Page: echo', { exact: true }).waitFor({ state: 'attached' });
      await assertAccessible(page);
    });

    test('the address holds what is on screen: the playground, a search, a page of requests', async () => {
      await openTab(echo, 'playground');
      const chosen = (name: string) => page.getByRole('button', { name, exact: true, pressed: true });
      for (const name of ['Stream', 'Form', 'TypeScript']) {
        await page.getByRole('button', { name, exact: true }).click();
        await chosen(name).waitFor();
      }
      await page.reload();
      for (const name of ['Stream', 'Form', 'TypeScript']) await chosen(name).waitFor();

      await page.goto('/serverless?q=echo');
      const search = page.getByLabel('Search the endpoints');
      await search.press('ControlOrMeta+a');
      await search.pressSequentially('paused');
      assert.equal(await search.inputValue(), 'paused', 'no key is lost');
      await page.waitForURL(/q=paused$/);
      await page.reload();
      await page.getByRole('link', { name: 'paused', exact: true }).waitFor();
      assert.equal(await page.getByRole('link', { name: 'echo', exact: true }).count(), 0);

      // One more than a page has.
      await Promise.all(
        Array.from({ length: 101 }, () => fixture.operator.call('POST', `/v2/${paused}/run`, { input: {} })),
      );
      await openTab(paused, 'requests');
      await page.getByRole('button', { name: 'Older' }).click();
      await page.waitForURL(/cursor=/);
      await page.reload();
      await page.getByRole('button', { name: 'Newest' }).waitFor();
      assert.equal(await page.getByRole('button', { name: 'Older' }).count(), 0);
      await page.getByRole('button', { name: 'Newest' }).click();
      await page.getByRole('button', { name: 'Older' }).waitFor();
    });

    test('settings make a release, which is rolled back', async () => {
      await openTab(echo, 'settings');
      await page.getByLabel('Environment variables').fill('export COLOUR="blue"\n# a comment');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText(/^Saved/).waitFor();
      await openTab(echo, 'releases');
      await page.getByText('Changed. Its values may be secret').waitFor();
      await page.getByRole('button', { name: 'Roll back to 0' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
      await page.getByText('Rolled back to release 0').waitFor();
      await page.getByRole('heading', { name: /Release 2/ }).waitFor();
    });

    test('an error is told in the words of the server', async () => {
      await openTab(echo, 'settings');
      await page.getByLabel('Workers at least').fill('9');
      await page.getByRole('button', { name: 'Save' }).click();
      const alert = page.getByRole('alert');
      await alert.waitFor();
      assert.match(await alert.innerText(), /Status 4\d\d · request [0-9a-f-]{36}/);
    });

    test('a change elsewhere appears by itself', async () => {
      await page.goto('/serverless');
      await page.getByRole('link', { name: 'echo', exact: true }).waitFor();
      await create('from elsewhere', 'local/echo');
      await page.getByRole('link', { name: 'from elsewhere' }).waitFor();
    });

    test('deleting asks for the name, and says what is lost', async () => {
      const id = await create('short-lived', 'local/echo');
      await openTab(id, 'settings');
      await page.getByRole('button', { name: 'Delete …' }).click();
      const dialog = page.getByRole('dialog', { name: 'Delete short-lived?' });
      await dialog.getByText(/stored results/).waitFor();
      const remove = dialog.getByRole('button', { name: 'Delete the endpoint' });
      assert.equal(await remove.isDisabled(), true);
      await dialog.getByLabel('Type short-lived to go on').fill('short-lived');
      await remove.click();
      await page.waitForURL(/\/serverless$/);
      await page.getByRole('link', { name: 'echo', exact: true }).waitFor();
      await page.getByRole('link', { name: 'short-lived', exact: true }).waitFor({ state: 'detached' });
    });
  });
