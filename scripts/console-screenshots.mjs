// Makes the pictures of the README: starts a server, fills it, and takes pictures of the console.
//   node scripts/console-screenshots.mjs      needs Chromium, as the tests of the console do
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'docs/images');
const KEY = 'rpa_SCREENSHOTSSCREENSHOTSSCREENSHOTS';
const SIZE = { width: 1280, height: 800 };

execFileSync(process.execPath, ['scripts/build-console.mjs'], { cwd: ROOT, stdio: 'inherit' });
mkdirSync(FOLDER, { recursive: true });
const data = mkdtempSync(join(tmpdir(), 'berth-screenshots-'));
const server = spawn('sh', ['packages/cloud/bin/berth', 'up', '--port', '0', '--data', data], {
  cwd: ROOT,
  env: { ...process.env, BERTH_ROOT_KEY: KEY, BERTH_DOCKER: 'off' },
  stdio: ['ignore', 'pipe', 'ignore'],
});
const url = await readUrl();
const browser = await chromium.launch({
  executablePath: process.env['BERTH_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
try {
  await takePictures();
} finally {
  await browser.close();
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  await ended;
  rmSync(data, { recursive: true, force: true });
}

async function takePictures() {
  const images = await createEndpoint('image-generator', 'echo');
  const speech = await createEndpoint('speech-to-text', 'failing');
  for (const prompt of ['a castle by the sea', 'a harbour at night', 'a lighthouse in fog']) {
    await call('POST', `/v2/${images}/runsync`, { input: { prompt, steps: 20, seed: 7 } });
    await call('POST', `/v2/${speech}/runsync`, {
      input: { audio: `https://example.com/${prompt.length}.wav` },
    });
  }
  const context = await browser.newContext({ baseURL: url, viewport: SIZE, reducedMotion: 'reduce' });
  const page = await context.newPage();
  await page.goto('/login');
  await page.getByLabel('API key').fill(KEY);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('jobs failed').waitFor();
  await save(page, 'console-overview');
  await page.goto(`/serverless/${images}/playground`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('completed', { exact: true }).waitFor();
  await save(page, 'console-playground');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(`/serverless/${speech}/requests`);
  await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(3).waitFor();
  await save(page, 'console-requests-dark');
}

/**
 * As WebP, which is a third of the size; the browser has the encoder.
 * @param {import('playwright-core').Page} page @param {string} name
 */
async function save(page, name) {
  const png = (await page.screenshot()).toString('base64');
  const blank = await browser.newPage();
  await blank.setContent(`<img src="data:image/png;base64,${png}"><canvas></canvas>`);
  // As text: the types of this project are those of Node.
  const picture = await blank.evaluate(`(async () => {
    const [image, canvas] = [document.querySelector('img'), document.querySelector('canvas')];
    await image.decode();
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext('2d').drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', 0.9);
  })()`);
  await blank.close();
  writeFileSync(join(FOLDER, `${name}.webp`), Buffer.from(String(picture).split(',')[1] ?? '', 'base64'));
}

/** @param {string} name @param {string} example @returns {Promise<string>} */
async function createEndpoint(name, example) {
  const made = await call('POST', '/v2/serverless', {
    name,
    type: 'QUEUE',
    image: `local/${example}`,
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    workers: { min: 1, max: 3 },
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  });
  return String(made['id']);
}

/**
 * @param {string} method @param {string} path @param {unknown} body @returns {Promise<Record<string,
 * unknown>>}
 */
async function call(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return /** @type {Record<string, unknown>} */ (await response.json());
}

/** @returns {Promise<string>} */
async function readUrl() {
  let output = '';
  for await (const chunk of server.stdout) {
    output += String(chunk);
    const found = /berth is up at (\S+)/.exec(output)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`the server did not start: ${output}`);
}
