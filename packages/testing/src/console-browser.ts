import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { serverFixture } from './server-fixture.ts';
import type { ServerFixture } from './server-fixture.ts';
import type { DatabaseKind } from './test-database.ts';

export const CHROMIUM = process.env['BERTH_CHROMIUM'] ?? '/usr/bin/chromium';
export const CHROMIUM_FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const BUILD = fileURLToPath(new URL('../../../scripts/build-console.mjs', import.meta.url));
/** On a busy machine a page may take long; a page that is stuck takes longer. */
const PAGE_TIMEOUT_MS = 30_000;

/** Why the tests of the console do not run, as the `skip` of a suite; false if they do. */
export function withoutBrowser(): string | false {
  if (existsSync(CHROMIUM)) return false;
  if (process.env['BERTH_REQUIRE_BROWSER'] === '1')
    throw new Error(`there is no browser at ${CHROMIUM}; install Debian's package chromium`);
  return `there is no browser at ${CHROMIUM}; install Debian's package chromium, or set BERTH_CHROMIUM`;
}

export interface ConsoleFixture extends ServerFixture {
  browser: Browser;
  /** A page of a new visitor, who is not signed in. */
  visit(): Promise<Page>;
  /** A page of someone who is signed in with this key, or with the root key. */
  signIn(key?: string): Promise<Page>;
  /** What scripts of the pages complained about. */
  problems: string[];
}

/** A server and a browser for the tests of a suite. At their end, no script of a page has met an error. */
export function consoleFixture(kind: DatabaseKind, env: Record<string, string> = {}): ConsoleFixture {
  before(() => execFileSync(process.execPath, [BUILD], { stdio: 'ignore' }));
  const stage = serverFixture(kind, env) as ConsoleFixture;
  stage.problems = [];
  before(async () => {
    stage.browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
    stage.visit = async () => (await newContext(stage)).newPage();
    stage.signIn = async (key = stage.server.key) => {
      const context = await newContext(stage);
      const page = await context.newPage();
      await page.goto('/login');
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      return page;
    };
  });
  after(async () => {
    await stage.browser?.close();
    assert.deepEqual(stage.problems, []);
  });
  return stage;
}

async function newContext(stage: ConsoleFixture): Promise<BrowserContext> {
  const context = await stage.browser.newContext({
    baseURL: stage.server.url,
    viewport: { width: 1280, height: 850 },
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(PAGE_TIMEOUT_MS);
  context.on('weberror', (error) => stage.problems.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error' && /Content.Security.Policy|Uncaught/i.test(message.text()))
      stage.problems.push(message.text());
  });
  return context;
}

/** Checks a page for barriers, in both themes. */
export async function assertAccessible(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await new AxeBuilder({ page }).analyze();
    assert.deepEqual(
      violations.map(
        ({ id, nodes }) => `${id} (${colorScheme}): ${nodes.map(({ html }) => html).join(' | ')}`,
      ),
      [],
      page.url(),
    );
  }
  await page.emulateMedia({ colorScheme: null });
}
