import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { buildConsole, launchChromium, missingBrowser } from './chromium.ts';
import type { BrowserOptions } from './chromium.ts';
import { serverFixture } from './server-fixture.ts';
import type { ServerFixture } from './server-fixture.ts';
import type { DatabaseKind } from './test-database.ts';
import { waitFor } from './wait-for.ts';

/** On a busy machine a page may take long; a page that is stuck takes longer. */
const PAGE_TIMEOUT_MS = 30_000;
/** The rules of axe whose outcome depends on the theme. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];
const AXE = createRequire(createRequire(import.meta.url).resolve('@axe-core/playwright')).resolve(
  'axe-core/axe.min.js',
);

/** Why the tests of the console do not run, as the `skip` of a suite; false if they do. */
export function withoutBrowser(options: BrowserOptions = {}): string | false {
  const missing = missingBrowser(options);
  if (missing !== undefined && process.env['BERTH_REQUIRE_BROWSER'] === '1') throw new Error(missing);
  return missing ?? false;
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

/** One for all suites of a file. */
let browser: Promise<Browser> | undefined;
/** What a page looks like does not depend on the database, so the first suite of a file alone looks for barriers. */
let databaseOfFirst: DatabaseKind | undefined;
const withoutBarrierChecks = new WeakSet<BrowserContext>();

/** A server and a browser for the tests of a suite. At their end, no script of a page has met an error. */
export function consoleFixture(
  kind: DatabaseKind,
  env: Record<string, string> = {},
  options: BrowserOptions = {},
): ConsoleFixture {
  databaseOfFirst ??= kind;
  before(buildConsole);
  // Before the server stops: pages would continue asking for it.
  after(async () => Promise.all((await browser)?.contexts().map((context) => context.close()) ?? []));
  const fixture = serverFixture(kind, env) as ConsoleFixture;
  fixture.problems = [];
  const newContext = async (): Promise<BrowserContext> => {
    const context = await openContext(fixture);
    if (kind !== databaseOfFirst) withoutBarrierChecks.add(context);
    return context;
  };
  before(async () => {
    browser ??= launchChromium(options);
    fixture.browser = await browser;
    fixture.visit = async () => (await newContext()).newPage();
    fixture.signIn = async (key = fixture.server.key) => {
      const context = await newContext();
      const page = await context.newPage();
      await page.goto('/login');
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      return page;
    };
  });
  after(() => assert.deepEqual(fixture.problems, []));
  return fixture;
}

/** At the end of the file. */
after(async () => (await browser)?.close());

async function openContext(fixture: ConsoleFixture): Promise<BrowserContext> {
  const context = await fixture.browser.newContext({
    baseURL: fixture.server.url,
    viewport: { width: 1280, height: 850 },
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(PAGE_TIMEOUT_MS);
  context.on('weberror', (error) => fixture.problems.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error' && /Content.Security.Policy|Uncaught/i.test(message.text()))
      fixture.problems.push(message.text());
  });
  return context;
}

/** Waits until nothing of a page is being loaded any more. The checks of the system page start programs. */
export async function waitUntilLoaded(page: Page): Promise<void> {
  await waitFor(
    'nothing loads any more',
    async () => (await page.locator('[aria-busy="true"]').count()) === 0,
    PAGE_TIMEOUT_MS * 2,
  );
}

/** Checks a page for barriers: with every rule in the light theme, with those of colours in the dark one. */
export async function assertAccessible(page: Page): Promise<void> {
  if (withoutBarrierChecks.has(page.context())) return;
  // The builder would send its half megabyte four times. No page has frames, which it would send it to as well.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(readFileSync(AXE, 'utf8'));
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // Legacy mode opens no second page per check; that one is for frames of other origins, of which there are none.
    const axe = new AxeBuilder({ page, axeSource: ';' })
      .setLegacyMode()
      .options({ resultTypes: ['violations'] });
    if (colorScheme === 'dark') axe.withRules(COLOR_RULES);
    const { violations } = await axe.analyze();
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
