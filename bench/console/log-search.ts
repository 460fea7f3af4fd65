import type { Page } from 'playwright-core';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import type { BerthProcess } from '../support/berth-process.ts';
import { callBerth } from '../support/call-berth.ts';

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
 * Follows a pod that prints 100,000 lines, then searches them. Answers the milliseconds from each search to
 * having its lines on screen.
 */
export async function searchLog(page: Page, berth: BerthProcess): Promise<number[]> {
  const print = `seq -f 'line %.0f of the log: castle, tower, moat' ${LINES}`;
  const { id } = await callBerth<{ id: string }>(berth, 'POST', '/v2/pods', {
    name: 'talkative',
    image: 'local/shell',
    args: `sh -c "${print}; sleep 1000"`,
    cpu: { id: 'cpu3c', vcpuCount: 2 },
  });
  await page.goto(`/pods/${id}/logs`);
  await page.locator('.log-line').first().waitFor();
  // The page begins with the last lines; what is printed while it is open is kept.
  await callBerth(berth, 'POST', `/v2/pods/${id}/action`, { action: 'restart' });
  const status = page.locator('.toolbar + [role=status]');
  await waitFor(
    'all lines are there',
    async () => {
      const lines = /of ([\d,]+) lines/.exec((await status.textContent()) ?? '')?.[1] ?? '0';
      return Number(lines.replaceAll(',', '')) >= LINES;
    },
    LINES_WITHIN_MS,
  );
  const times: number[] = [];
  for (const words of WORDS) {
    times.push(await page.evaluate<number>(`(${SEARCH})(${JSON.stringify(words)})`));
    await page.evaluate(`(${SEARCH})('')`);
  }
  await callBerth(berth, 'DELETE', `/v2/pods/${id}`);
  return times;
}
