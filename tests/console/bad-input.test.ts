import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { consoleFixture, withoutBrowser } from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';

const MEGABYTE = 1_000_000;
const SCRIPT = '<img src=x onerror="window.executed=1"><script>window.executed=1</script>';
/** Right to left, without spaces, combined, joined, invisible, and markup. */
const NAMES = [
  'مرحبا بالعالم שלום',
  '模型服务器模型服务器模型服务器模型服务器模型服务器',
  'ไทย हिन्दी 한국어 日本語 ελληνικά кириллица',
  'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ 👩‍👩‍👧‍👦',
  '\u202egnp.exe\u200b\u2066',
  SCRIPT,
];

for (const kind of DATABASES)
  describe(`console: what goes wrong is shown, and nothing is lost, ${kind}`, {
    skip: withoutBrowser(),
  }, () => {
    const fixture = consoleFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let page: Page;
    let echo: string;

    before(async () => {
      echo = await create('/v2/serverless', queueEndpoint('echo', 'local/echo'));
      page = await fixture.signIn();
    });

    const create = (path: string, body: unknown): Promise<string> =>
      createResource(fixture.operator, path, body);
    const press = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();
    async function assertNothingExecuted(): Promise<void> {
      assert.equal(await page.evaluate('window.executed'), undefined);
    }

    test('two tabs change the same endpoint: neither takes back what the other did', async () => {
      const other = await page.context().newPage();
      for (const tab of [page, other]) {
        await tab.goto(`/serverless/${echo}/settings`);
        await tab.getByLabel('Name', { exact: true }).waitFor();
      }
      await page.getByLabel('Name', { exact: true }).fill('mine');
      await page.getByLabel('Workers at least').fill('0');
      await other.getByLabel('Name', { exact: true }).fill('theirs');
      await other.getByLabel('Workers at most').fill('3');
      await other.getByRole('button', { name: 'Save' }).click();
      await other.getByText(/^Saved/).waitFor();
      // What was typed here stays, what was not follows, and the conflict is named.
      await page.getByText('Changed elsewhere while you typed').waitFor();
      await page.locator('code', { hasText: 'theirs' }).waitFor();
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'mine');
      assert.equal(await page.getByLabel('Workers at most').inputValue(), '3');
      await press('Save');
      await page.getByText(/^Saved/).waitFor();
      const { body } = await fixture.operator.call<{ name: string; workers: { max: number } }>(
        'GET',
        `/v2/serverless/${echo}`,
      );
      assert.deepEqual([body.name, body.workers.max], ['mine', 3]);
      await other.close();
    });

    test('what is deleted in another tab says so', async () => {
      const id = await create('/v2/serverless', queueEndpoint('gone soon', 'local/echo'));
      await page.goto(`/serverless/${id}/settings`);
      await page.getByLabel('Name', { exact: true }).fill('too late');
      await fixture.operator.call('DELETE', `/v2/serverless/${id}`);
      await press('Save');
      await page
        .getByRole('alert')
        .getByText(/Status 404 · request/)
        .first()
        .waitFor();
    });

    test('a worker that prints colours, markup and lines of 10 MB', async () => {
      const print = [
        "printf '\\033[31mred\\033[0m \\033]0;title\\007 tower\\n'",
        `echo '${SCRIPT.replaceAll('"', '')} moat'`,
        `head -c ${10 * MEGABYTE} /dev/zero | tr '\\0' x`,
        "echo; echo 'the end'; sleep 1000",
      ].join('; ');
      const id = await create('/v2/serverless', {
        ...queueEndpoint('loud', 'local/shell'),
        args: `sh -c '${print.replaceAll("'", `'\\''`)}'`,
        workers: { min: 1, max: 1 },
      });
      await page.goto(`/serverless/${id}/logs`);
      await page.locator('.log-line', { hasText: 'the end' }).first().waitFor();
      await page.getByLabel('Search the log').fill('tower');
      const line = page.locator('.log-line', { hasText: 'tower' }).first();
      await line.waitFor();
      assert.match(await line.innerText(), /red {2}tower/);
      await page.getByLabel('Search the log').fill('moat');
      await page.locator('.log-line', { hasText: '<script>' }).first().waitFor();
      await page.getByLabel('Search the log').fill('xxxx');
      await page.locator('.log-line', { hasText: 'download for all of them' }).first().waitFor();
      const longest = await page.evaluate<number>(
        `Math.max(...[...document.querySelectorAll('.log-line')].map((line) => line.textContent.length))`,
      );
      assert.ok(longest < 5_000, `${longest} characters in one line of the document`);
      await assertNothingExecuted();
      await fixture.operator.call('DELETE', `/v2/serverless/${id}`);
    });

    test('an input of 10 MB: one too large is refused in words, others run and are looked at', async () => {
      const body = (bytes: number): string =>
        JSON.stringify({ input: { lines: Array.from({ length: bytes / 1000 }, () => 'x'.repeat(990)) } });
      await page.goto(`/serverless/${echo}/playground`);
      await press('Run in the background');
      // From a file, and from the clipboard.
      await page.getByLabel('File with JSON').setInputFiles({
        name: 'request.json',
        mimeType: 'application/json',
        buffer: Buffer.from(body(11 * MEGABYTE)),
      });
      await page.getByLabel('Beginning of Body').waitFor();
      await press('Run');
      await page
        .getByRole('alert')
        .getByText(/Status 4\d\d · request/)
        .waitFor();
      await press('Clear');
      await press('Run and wait');
      const field = page.getByLabel('Body', { exact: true });
      await field.focus();
      await page.evaluate(`{
        const data = new DataTransfer();
        data.setData('text/plain', JSON.stringify(${body(MEGABYTE)}).padEnd(${10 * MEGABYTE}));
        const field = document.activeElement;
        field.setSelectionRange(0, field.value.length);
        field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
      }`);
      await page.getByText('Body: 10.0 MB').waitFor();
      await press('Run');
      await page.getByText('completed', { exact: true }).waitFor();
      assert.match(await page.getByLabel('Program', { exact: true }).innerText(), /@request\.json/);
      assert.match(await page.getByLabel('Answer', { exact: true }).innerText(), /characters in all/);
      await page.getByRole('link', { name: 'details' }).click();
      const job = page.getByRole('dialog', { name: /^Job / });
      assert.match(await job.getByLabel('Input', { exact: true }).innerText(), /characters in all/);
    });

    test('names in every script and with markup are text, and break no page', async () => {
      for (const name of NAMES) {
        await create('/v2/serverless', queueEndpoint(name, 'local/echo'));
        await create('/v2/network-volumes', { name, size: 10, dataCenter: 'LOCAL-1' });
        await create('/v2/templates', { name, image: 'local/shell' });
      }
      for (const [path, label] of [
        ['/serverless', 'Endpoints'],
        ['/storage', 'Network volumes'],
        ['/templates', 'Templates'],
      ] as const) {
        await page.goto(path);
        const table = page.getByRole('table', { name: label });
        await table
          .locator('tbody tr')
          .nth(NAMES.length - 1)
          .waitFor();
        const shown = await table.innerText();
        for (const name of NAMES) assert.ok(shown.includes(name), `${name} on ${path}`);
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 1280, path);
      }
      await assertNothingExecuted();
    });

    test('a server that restarts: the page says so, goes on, and has what changed', async () => {
      await page.goto('/templates');
      await page.getByRole('button', { name: 'New template' }).click();
      await page.getByLabel('Name', { exact: true }).fill('half typed');
      const banner = page.getByText('Berth does not answer. What you see may be out of date');
      await fixture.restart(() => banner.waitFor());
      await banner.waitFor({ state: 'detached' });
      assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'half typed');
      await page.getByLabel('Image', { exact: true }).fill('local/shell');
      await press('Create');
      await page.getByRole('cell', { name: 'half typed', exact: true }).waitFor();
      // Events arrive again.
      await page.goto('/serverless');
      await page.getByRole('link', { name: 'mine' }).waitFor();
      await create('/v2/serverless', queueEndpoint('after the restart', 'local/echo'));
      await page.getByRole('link', { name: 'after the restart' }).waitFor();
    });

    test('a slow network: the page says that it loads, and a second click does nothing', async () => {
      await page.goto('/secrets');
      await page.getByRole('button', { name: 'New secret' }).waitFor();
      const devtools = await page.context().newCDPSession(page);
      await devtools.send('Network.enable');
      await devtools.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 1_000,
        downloadThroughput: 50_000,
        uploadThroughput: 50_000,
      });
      await page.getByRole('link', { name: 'Pods' }).click();
      await page.locator('.skeleton').first().waitFor();
      await page.getByRole('heading', { name: 'No pods yet' }).waitFor();
      await page.getByRole('link', { name: 'Secrets' }).click();
      await press('New secret');
      await page.getByLabel('Name', { exact: true }).fill('ONLY_ONCE');
      await page.getByLabel('Value', { exact: true }).fill('x');
      const submit = page.getByRole('button', { name: 'Create', exact: true });
      await submit.click();
      assert.equal(await submit.isDisabled(), true);
      await page.getByRole('cell', { name: 'ONLY_ONCE', exact: true }).waitFor();
      await devtools.detach();
      const { body } = await fixture.operator.call<{ secrets: unknown[] }>('GET', '/v2/account/secrets');
      assert.equal(body.secrets.length, 1);
    });
  });
