import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import {
  consoleFixture,
  waitUntilLoaded,
  withoutBrowser,
} from '../../packages/testing/src/console-browser.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { PageSnapshots } from '../../packages/testing/src/page-snapshot.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = `${ROOT}/docs/images`;
const PICTURES = ['console-overview', 'console-playground', 'console-requests-dark'];
const KEPT_MS = 3_600_000;
const PROMPTS = ['a castle by the sea', 'a harbour at night', 'a lighthouse in fog'];

test('the README shows the three pictures that are made here', () => {
  const shown = [...readFileSync(`${ROOT}/README.md`, 'utf8').matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(
    ([, path]) => path,
  );
  assert.deepEqual(
    shown,
    PICTURES.map((name) => `docs/images/${name}.png`),
  );
  for (const path of shown) assert.ok(existsSync(`${ROOT}/${path}`), path);
});

/** Fails where a picture is missing, or the page looks different by now; BERTH_UPDATE_SNAPSHOTS=1 makes them anew. */
const BROWSER = { isWhole: true };

describe('the pictures of the README are what the console looks like', {
  skip: withoutBrowser(BROWSER),
}, () => {
  const fixture = consoleFixture('sqlite', { BERTH_RATE_LIMITS: 'off' }, BROWSER);
  let snapshots: PageSnapshots;
  let page: Page;
  let images: string;
  let speech: string;

  before(async () => {
    snapshots = new PageSnapshots(fixture.browser, FOLDER);
    images = await create('image-generator', 'local/echo', { min: 1, max: 3 });
    // Its worker ends soon, so that no picture has it.
    speech = await create('speech-to-text', 'local/failing', { min: 0, max: 3, idleTimeout: 1 });
    for (const prompt of PROMPTS) {
      await run(images, { prompt, steps: 20, seed: 7 });
      await run(speech, { audio: `https://example.com/${prompt.replaceAll(' ', '-')}.wav` });
    }
    await waitFor('one worker that is idle', async () => {
      const { body } = await fixture.operator.call<{ workers: Record<string, number> }>(
        'GET',
        '/v2/account/overview',
      );
      const { idle, ...others } = body.workers;
      return idle === 1 && others['ready'] === 1 && others['running'] === 0 && others['initializing'] === 0;
    });
    const context = await fixture.browser.newContext({
      baseURL: fixture.server.url,
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
      // The font of the pictures is added to the page.
      bypassCSP: true,
    });
    page = await context.newPage();
    await page.goto('/login');
    await page.getByLabel('API key').fill(fixture.server.key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  const create = (name: string, image: string, workers: Parameters<typeof queueEndpoint>[2]) =>
    createResource(fixture.operator, '/v2/serverless', queueEndpoint(name, image, workers));
  const run = (id: string, input: object) =>
    fixture.operator.call('POST', `/v2/${id}/runsync?wait=60000`, { input, retention: KEPT_MS });
  const look = async (name: string): Promise<void> => {
    assert.ok(PICTURES.includes(name));
    await waitUntilLoaded(page);
    const shown = new Map([
      [images, 'k7m2x9q4w1b8tz'],
      [speech, 'r3v6y0p5n8c2hd'],
    ]);
    await snapshots.assertSame(name, page, shown);
  };

  test('the overview', async () => {
    await page.goto('/');
    await page.getByText('3 jobs failed').waitFor();
    await look('console-overview');
  });

  test('a job in the playground', async () => {
    await page.goto(`/serverless/${images}/playground`);
    await waitFor('the last input', async () =>
      (await page.getByLabel('Body').inputValue()).includes(PROMPTS.at(-1) ?? ''),
    );
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('completed', { exact: true }).waitFor();
    await look('console-playground');
  });

  test('failed requests by error, in the dark theme', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(`/serverless/${speech}/requests`);
    await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(3).waitFor();
    await page
      .getByRole('button', { name: /Show jobs of error/ })
      .first()
      .waitFor();
    await look('console-requests-dark');
  });
});
