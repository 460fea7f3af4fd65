import type { Browser, BrowserContext } from 'playwright-core';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { withBarePage } from './bare-page.ts';

/**
 * Usable: what the page is about is on screen, and the main thread is free. The time since the start of the
 * navigation is left in `benchUsable`. The title says so: it can be read without asking the page.
 */
const RECORD_USABLE = `
  const record = new MutationObserver(() => {
    if (![...document.querySelectorAll('h2')].some((title) => title.textContent === 'Needs you now')) return;
    record.disconnect();
    requestAnimationFrame(() => setTimeout(() => {
      window.benchUsable = performance.now();
      document.title = 'usable';
    }, 0));
  });
  record.observe(document, { childList: true, subtree: true });
`;
const READ = `({
  paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
  usable: window.benchUsable,
})`;

export interface PageLoad {
  /** Milliseconds until the first content is painted. */
  paint: number;
  /** Milliseconds until the page can be used. */
  usable: number;
}

export interface SignedIn {
  baseURL: string;
  viewport: { width: number; height: number };
  storageState: Awaited<ReturnType<BrowserContext['storageState']>>;
}

/** Opens the overview with an empty cache, on a processor that is so many times slower. */
export async function loadOverview(
  browser: Browser,
  { baseURL, viewport, storageState }: SignedIn,
  slowdown = 1,
): Promise<PageLoad> {
  return await withBarePage(browser, { cookies: storageState.cookies, ...viewport }, async (page) => {
    await page.send('Page.addScriptToEvaluateOnNewDocument', { source: RECORD_USABLE });
    await page.send('Page.enable');
    if (slowdown > 1) await page.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    await page.send('Page.navigate', { url: `${baseURL}/` });
    await waitFor('the page is usable', async () => (await page.title()) === 'usable');
    const { result } = await page.send<{ result: { value: PageLoad } }>('Runtime.evaluate', {
      expression: READ,
      returnByValue: true,
    });
    return result.value;
  });
}
