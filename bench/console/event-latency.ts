import type { Page } from 'playwright-core';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import type { BerthProcess } from '../support/berth-process.ts';
import { callBerth } from '../support/call-berth.ts';

/** Leaves the time at which each name was first on screen in `benchSeen`. */
const RECORD_NAMES = `
  window.benchSeen = {};
  new MutationObserver(() => {
    for (const link of document.querySelectorAll('tbody a'))
      window.benchSeen[link.textContent] ??= performance.timeOrigin + performance.now();
  }).observe(document, { childList: true, subtree: true, characterData: true });
`;

/**
 * Renames an endpoint again and again while the list is open. Answers the milliseconds from sending each
 * change to having it on screen.
 */
export async function eventLatencies(
  page: Page,
  berth: BerthProcess,
  endpointId: string,
  pausesMs: readonly number[],
): Promise<number[]> {
  await page.addInitScript(RECORD_NAMES);
  await page.goto('/serverless');
  await page.locator('tbody a').first().waitFor();
  const latencies: number[] = [];
  for (const [index, pauseMs] of pausesMs.entries()) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const name = `changed ${index}`;
    const before = performance.timeOrigin + performance.now();
    await callBerth(berth, 'PATCH', `/v2/serverless/${endpointId}`, { name });
    const seen = await waitFor('the change is on screen', () =>
      page.evaluate<number | undefined>(`window.benchSeen[${JSON.stringify(name)}]`),
    );
    latencies.push(seen - before);
  }
  return latencies;
}
