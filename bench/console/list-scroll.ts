import type { Page } from 'playwright-core';

const SCROLL_MS = 4_000;
/** Pixels of each frame: about six rows. */
const STEP = 240;

/** Scrolls at a steady pace and counts frames and rows. */
const scroll = (regionSelector: string, rowSelector: string, step: number): string => `new Promise((done) => {
  const region = document.querySelector('${regionSelector}');
  const times = [];
  let rows = 0;
  const step = (now) => {
    times.push(now);
    region.scrollTop += ${step};
    rows = Math.max(rows, region.querySelectorAll('${rowSelector}').length);
    if (now - times[0] < ${SCROLL_MS}) requestAnimationFrame(step);
    else done({ framesPerSecond: ((times.length - 1) * 1000) / (now - times[0]), rows });
  };
  requestAnimationFrame(step);
})`;

export interface ListScroll {
  framesPerSecond: number;
  /** The most rows that were in the document. */
  rows: number;
}

export async function scrollPods(page: Page, pods: number): Promise<ListScroll> {
  await page.goto('/pods');
  await page.locator(`table[aria-rowcount="${pods}"]`).waitFor();
  return page.evaluate<ListScroll>(scroll('.table-scroll', 'tbody tr', STEP));
}

/** Of the log that is open: back from its end. */
export function scrollLog(page: Page): Promise<ListScroll> {
  return page.evaluate<ListScroll>(scroll('.log', '.log-line', -STEP));
}
