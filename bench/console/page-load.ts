import type { Browser, BrowserContextOptions } from 'playwright-core';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/**
 * Usable: what the page is about is on screen, and the main thread is free. The time since the start of the
 * navigation is left in `benchUsable`.
 */
const RECORD_USABLE = `
  const record = new MutationObserver(() => {
    if (![...document.querySelectorAll('h2')].some((title) => title.textContent === 'Needs you now')) return;
    record.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.benchUsable = performance.now(); }, 0));
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

/** Opens the overview with an empty cache, on a processor that is so many times slower. */
export async function loadOverview(
  browser: Browser,
  options: BrowserContextOptions,
  slowdown = 1,
): Promise<PageLoad> {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    await page.addInitScript(RECORD_USABLE);
    if (slowdown > 1) {
      const devtools = await context.newCDPSession(page);
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    }
    await page.goto('/');
    await waitFor('the page is usable', () => page.evaluate<boolean>('window.benchUsable !== undefined'));
    return await page.evaluate<PageLoad>(READ);
  } finally {
    await context.close();
  }
}
