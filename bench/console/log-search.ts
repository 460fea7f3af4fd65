import type { Page } from 'playwright-core';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import type { BerthProcess } from '../support/berth-process.ts';
import { callBerth } from '../support/call-berth.ts';
import { scrollLog } from './list-scroll.ts';
import type { ListScroll } from './list-scroll.ts';

const LINES = 100_000;
const LINES_WITHIN_MS = 60_000;
/** Found in many lines, in few, and in none. */
const WORDS = ['1', '77', 'line 99999 ', 'no such line', 'LINE 5', '0 of the log'];

const SEARCH = `(words) => new Promise((done) => {
  const field = document.querySelector('input[aria-label="Search the log"]');
  const status = document.querySelector('.toolbar + [role=status]');
  const before = status.textContent;
  const began = performance.now();
  const changed = new MutationObserver(() => {
    if (status.textContent === before) return;
    changed.disconnect();
    // The frame that shows it has been drawn when the next one begins.
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
  });
  changed.observe(status, { childList: true, subtree: true, characterData: true });
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, words);
  field.dispatchEvent(new Event('input', { bubbles: true }));
})`;

/**
 * Opens the log of a pod that has printed 100,000 lines; the first search reads them all. Answers the
 * milliseconds from each further search to having its lines on screen, and how it scrolls.
 */
export async function searchLog(
  page: Page,
  berth: BerthProcess,
): Promise<{ times: number[]; scroll: ListScroll }> {
  const print = `seq -f 'line %.0f of the log: castle, tower, moat' ${LINES}`;
  const { id } = await callBerth<{ id: string }>(berth, 'POST', '/v2/pods', {
    name: 'talkative',
    image: 'local/shell',
    args: `sh -c "${print}; sleep 1000"`,
    cpu: { id: 'cpu3c', vcpuCount: 2 },
  });
  await page.goto(`/pods/${id}/logs`);
  await page.locator('.log-line', { hasText: `line ${LINES} of` }).waitFor({ timeout: LINES_WITHIN_MS });
  const search = page.getByLabel('Search the log');
  await search.fill('line 1 of the log');
  await page.locator('.log-line', { hasText: 'line 1 of' }).waitFor({ timeout: LINES_WITHIN_MS });
  await search.fill('');
  const status = page.locator('.toolbar + [role=status]');
  await waitFor(
    'all lines are there',
    async () => {
      const lines = /^([\d,]+) of/.exec((await status.textContent()) ?? '')?.[1] ?? '0';
      return Number(lines.replaceAll(',', '')) >= LINES;
    },
    LINES_WITHIN_MS,
  );
  const times: number[] = [];
  for (const words of WORDS) {
    times.push(await page.evaluate<number>(`(${SEARCH})(${JSON.stringify(words)})`));
    await page.evaluate(`(${SEARCH})('')`);
  }
  await page.getByRole('button', { name: 'Following' }).click();
  const scroll = await scrollLog(page);
  await callBerth(berth, 'DELETE', `/v2/pods/${id}`);
  return { times, scroll };
}
