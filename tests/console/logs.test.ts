import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  consoleFixture,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { CPU_HARDWARE, createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

const LINES = 100_000;
const MAX_ROWS_IN_DOCUMENT = 200;
const PRINTED_WITHIN_MS = 60_000;
const PRINT = `echo needle; seq -f 'line %.0f of the log' ${LINES}; echo the end; sleep 1000`;

for (const kind of DATABASES)
  describe(`console: logs of 100,000 lines, ${kind}`, { skip: withoutBrowser() }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let pod: string;
    before(async () => {
      pod = await createResource(fixture.operator, '/v2/pods', {
        name: 'talkative',
        image: 'local/shell',
        args: `sh -c "${PRINT}"`,
        cpu: CPU_HARDWARE,
      });
      await printed(`/v2/pods/${pod}/logs`);
      page = await fixture.signIn();
    });

    /** Waits until the log has its last line. */
    const printed = (path: string): Promise<unknown> =>
      waitFor(
        'all lines are printed',
        async () =>
          /"the end"/.test((await fixture.operator.call('GET', `${path}?tail=1&follow=false`)).text),
        PRINTED_WITHIN_MS,
      );

    const line = (text: string) => page.locator('.log-line', { hasText: text });
    const older = () => page.getByRole('button', { name: 'Older lines' });
    const status = () => page.locator('.toolbar + [role=status]');
    const count = async (): Promise<number> =>
      Number(/of ([\d,]+) lines/.exec(await status().innerText())?.[1]?.replaceAll(',', ''));
    /** The first line that is in view as a whole. Rows follow a change of place with the next frame. */
    const firstInView = (): Promise<string> =>
      page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => {
      const top = document.querySelector('.log').getBoundingClientRect().top;
      return [...document.querySelectorAll('.log-line')]
        .map((row) => [row.getBoundingClientRect().top - top, row.querySelector('.log-text').textContent])
        .filter(([from]) => from >= -1)
        .sort(([one], [other]) => one - other)[0][1];
    })`);

    test('scrolling back reads older lines, and those on screen stay where they are', async () => {
      await page.goto(`/pods/${pod}/logs`);
      await line('the end').waitFor();
      await older().waitFor();
      const few = await count();
      assert.ok(few < LINES / 10, `${few} lines`);
      const first = await page.evaluate<number>(
        `(() => {
        const log = document.querySelector('.log');
        log.dispatchEvent(new WheelEvent('wheel', { deltaY: -1, bubbles: true }));
        return log.scrollHeight;
      })()`,
      );
      assert.ok(first > 0);
      await page.getByRole('button', { name: 'Follow', exact: true }).waitFor();
      // Near the first line, but not at it.
      await page.evaluate(`document.querySelector('.log').scrollTop = 400`);
      await waitFor('older lines', async () => (await count()) > few);
      const shown = await firstInView();
      assert.match(shown, /^line 99\d{3} of/);
      await older().click();
      await waitFor('more of them', async () => (await count()) > few + 5_000);
      assert.equal(await firstInView(), shown);
      assert.ok((await page.locator('.log-line').count()) <= MAX_ROWS_IN_DOCUMENT);
      await assertAccessible(page);
    });

    test('to the very first line, page by page', async () => {
      for (let pages = 0; await older().isVisible(); pages += 1) {
        assert.ok(pages < 25, `${pages} pages`);
        const before = await count();
        await older().click();
        await waitFor('the next page', async () => (await count()) > before || !(await older().isVisible()));
      }
      assert.ok((await count()) >= LINES);
      await page.evaluate(`document.querySelector('.log').scrollTop = 0`);
      await line('needle').waitFor();
      assert.ok((await page.locator('.log-line').count()) <= MAX_ROWS_IN_DOCUMENT);
    });

    test('a search finds what was not read yet', async () => {
      await page.goto(`/pods/${pod}/logs`);
      await older().waitFor();
      await page.getByLabel('Search the log').fill('needle');
      await line('needle').waitFor();
      assert.match(await status().innerText(), /^1 of 100,00\d lines/);
      await page.getByLabel('Search the log').fill('LINE 77777 of');
      await line('line 77777 of').waitFor();
    });

    test('a level leaves the lines above it, a wrapped line is as high as its text; both are in the address', async () => {
      const loud = await createResource(fixture.operator, '/v2/pods', {
        name: 'levels',
        image: 'local/shell',
        args: `sh -c "echo INFO all is well; echo WARN nearly full; echo ERROR no space; seq -s ' ' 300; echo the end; sleep 1000"`,
        cpu: CPU_HARDWARE,
      });
      await page.goto(`/pods/${loud}/logs`);
      await line('the end').waitFor();
      await page.getByLabel('Level').selectOption('warn');
      await line('all is well').waitFor({ state: 'detached' });
      await line('nearly full').waitFor();
      await page.getByLabel('Level').selectOption('error');
      await line('nearly full').waitFor({ state: 'detached' });
      await line('no space').waitFor();
      await page.reload();
      await line('no space').waitFor();
      assert.equal(await line('nearly full').count(), 0);
      await page.getByLabel('Level').selectOption('debug');

      const height = async (): Promise<number> => (await line('298 299 300').boundingBox())?.height ?? 0;
      /** Where the line after the long one begins, below its end. */
      const gap = async (): Promise<number> => {
        const [long, next] = [await line('298 299 300').boundingBox(), await line('the end').boundingBox()];
        return Math.round((next?.y ?? 0) - (long?.y ?? 0) - (long?.height ?? 0));
      };
      await line('298 299 300').waitFor();
      const one = await height();
      await page.getByRole('button', { name: 'Wrap', exact: true }).click();
      await waitFor('it has several rows', async () => (await height()) > 1.5 * one && (await gap()) === 0);
      await page.reload();
      await page.getByRole('button', { name: 'Wrapped', exact: true }).click();
      await waitFor('it has one row again', async () => (await height()) === one && (await gap()) === 0);
      await fixture.operator.call('DELETE', `/v2/pods/${loud}`);
    });

    test('a download has all lines', async () => {
      await page.goto(`/pods/${pod}/logs`);
      await older().waitFor();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download' }).click(),
      ]);
      const text = readFileSync((await file.path()) ?? '', 'utf8');
      assert.equal(text.match(/ line \d+ of the log\n/g)?.length, LINES);
      assert.match(text, / needle\n[^\n]* line 1 of the log\n/);
    });

    test('the log of a worker is read back too', async () => {
      const endpoint = await createResource(fixture.operator, '/v2/serverless', {
        ...queueEndpoint('talkative', 'local/shell', { min: 1, max: 1 }),
        args: `sh -c "${PRINT}"`,
      });
      const workers = `/v2/serverless/${endpoint}/workers`;
      let worker: string | undefined;
      await waitFor('a worker', async () => {
        const { body } = await fixture.operator.call<{ workers: { id: string }[] }>('GET', workers);
        worker = body.workers[0]?.id;
        return worker !== undefined;
      });
      await printed(`${workers}/${worker ?? ''}/logs`);
      await page.goto(`/serverless/${endpoint}/logs`);
      await line('the end').waitFor();
      await older().waitFor();
      await page.getByLabel('Search the log').fill('needle');
      await line('needle').waitFor();
      assert.ok((await count()) >= LINES);
    });
  });
