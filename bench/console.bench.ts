import type { Browser, Page } from 'playwright-core';
import { buildConsole, launchChromium, missingBrowser } from '../packages/testing/src/chromium.ts';
import { RowCopier } from '../packages/testing/src/copy-rows.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { firstLoadKilobytes, wholeKilobytes } from './console/console-sizes.ts';
import { eventLatencies } from './console/event-latency.ts';
import { scrollPods } from './console/list-scroll.ts';
import type { ListScroll } from './console/list-scroll.ts';
import { searchLog } from './console/log-search.ts';
import { loadOverview } from './console/page-load.ts';
import type { SignedIn } from './console/page-load.ts';
import type { BenchContext } from './support/bench-context.ts';
import { MILLISECONDS, formatValue } from './support/bench-report.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { createEndpoint, startBerth } from './support/berth-process.ts';
import { callBerth } from './support/call-berth.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { median, quantile } from './support/statistics.ts';
import { waitUntilIdle } from './support/wait-until-idle.ts';

const LOADS = 5;
const SLOWDOWN = 4;
const PODS = 10_000;
const VIEWPORT = { width: 1280, height: 850 };
/** Changes alone, then several within a second. */
const PAUSES_MS = [...Array<number>(20).fill(700), ...Array<number>(40).fill(80)];
const BARS = {
  firstLoad: 220,
  whole: 600,
  paint: 300,
  usable: 1000,
  event: 250,
  frames: 50,
  rows: 200,
  search: 100,
};

/** The web console in Chromium, on the same machine as the server. */
export async function webConsole(bench: BenchContext): Promise<void> {
  const { report } = bench;
  report.part('console', `the web console in Chromium; times are medians of ${LOADS} loads, or percentiles`);
  const missing = missingBrowser({ isWhole: true });
  if (missing !== undefined) return report.missingTool('chromium', 'apt install chromium', 'console');
  buildConsole();
  await withCleanup(async (scope) => {
    const { berth, endpointId } = await startWithPods(scope);
    const browser = await launchChromium({ isWhole: true });
    scope.defer(() => browser.close());
    const signedIn = await signIn(browser, berth);
    // A page that stays open would follow events and take part in the next measurement.
    const withPage = async <T>(measure: (page: Page) => Promise<T>): Promise<T> => {
      const context = await browser.newContext(signedIn);
      try {
        return await measure(await context.newPage());
      } finally {
        await context.close();
      }
    };
    const atMost = (what: string, value: number, bar: number, unit: string, digits = 0): void =>
      report.bar({
        part: 'console',
        what,
        bar: `<= ${bar}${unit}`,
        measured: formatValue(value, { name: unit, digits }),
        met: value <= bar,
      });

    atMost('first load, gzip', await withPage(firstLoadKilobytes), BARS.firstLoad, ' KB');
    atMost('whole console, gzip', wholeKilobytes(), BARS.whole, ' KB');

    await waitUntilIdle();
    const plain = await repeat(LOADS, () => loadOverview(browser, signedIn));
    const slowed = await repeat(LOADS, () => loadOverview(browser, signedIn, SLOWDOWN));
    report.figures('the overview, empty cache', MILLISECONDS, [
      { name: 'first paint', values: plain.map(({ paint }) => paint) },
      { name: 'usable', values: plain.map(({ usable }) => usable) },
      { name: `first paint, processor ${SLOWDOWN} times slower`, values: slowed.map(({ paint }) => paint) },
      { name: `usable, processor ${SLOWDOWN} times slower`, values: slowed.map(({ usable }) => usable) },
    ]);
    atMost('first paint', median(plain.map(({ paint }) => paint)), BARS.paint, ' ms');
    atMost(
      `usable, processor ${SLOWDOWN} times slower`,
      median(slowed.map(({ usable }) => usable)),
      BARS.usable,
      ' ms',
    );

    const latencies = await withPage((page) => eventLatencies(page, berth, endpointId, PAUSES_MS));
    report.print(`\nan event on screen: p50 ${quantile(latencies, 0.5).toFixed(0)} ms`);
    atMost('an event on screen, p95', quantile(latencies, 0.95), BARS.event, ' ms');

    const smooth = (what: string, { framesPerSecond, rows }: ListScroll): void => {
      report.bar({
        part: 'console',
        what: `frames per second, scrolling ${what}`,
        bar: `>= ${BARS.frames}`,
        measured: framesPerSecond.toFixed(0),
        met: framesPerSecond >= BARS.frames,
      });
      atMost(`rows in the document, scrolling ${what}`, rows, BARS.rows, '');
    };
    smooth(`${PODS.toLocaleString('en-US')} pods`, await withPage((page) => scrollPods(page, PODS)));

    const { times, scroll } = await withPage((page) => searchLog(page, berth));
    smooth('100,000 log lines', scroll);
    report.print(`searches of 100,000 log lines: ${times.map((time) => time.toFixed(0)).join(' ')} ms`);
    atMost('search of 100,000 log lines, the slowest', Math.max(...times), BARS.search, ' ms');
  });
}

async function startWithPods(scope: CleanupScope): Promise<{ berth: BerthProcess; endpointId: string }> {
  const storage = { data: scope.folder('console'), database: '' };
  const first = await startBerth(storage);
  const endpointId = await createEndpoint(first, 'bench');
  const podId = await createStoppedPod(first);
  await first.stop();
  const copier = await RowCopier.open({ data: storage.data, url: storage.database });
  await copier.copyResources('pods', podId, PODS - 1, 'pod ');
  await copier.close();
  const berth = await startBerth(storage);
  scope.defer(berth.stop);
  return { berth, endpointId };
}

async function createStoppedPod(berth: BerthProcess): Promise<string> {
  const { id } = await callBerth<{ id: string }>(berth, 'POST', '/v2/pods', {
    name: 'stopped',
    image: 'local/shell',
    args: 'sleep 1000',
    cpu: { id: 'cpu3c', vcpuCount: 2 },
  });
  const reach = (status: string): Promise<unknown> =>
    waitFor(`the pod is ${status}`, async () => {
      const pod = await callBerth<{ status: string }>(berth, 'GET', `/v2/pods/${id}`);
      return pod.status === status;
    });
  await reach('RUNNING');
  await callBerth(berth, 'POST', `/v2/pods/${id}/action`, { action: 'stop' });
  await reach('EXITED');
  return id;
}

/** The cookie of a session, for any number of contexts. */
async function signIn(browser: Browser, berth: BerthProcess): Promise<SignedIn> {
  const context = await browser.newContext({ baseURL: berth.url });
  const page = await context.newPage();
  await page.goto('/login');
  await page.getByLabel('API key').fill(berth.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const storageState = await context.storageState();
  await context.close();
  return { baseURL: berth.url, viewport: VIEWPORT, storageState };
}

async function repeat<T>(times: number, measure: () => Promise<T>): Promise<T[]> {
  const values: T[] = [];
  for (let round = 0; round < times; round += 1) values.push(await measure());
  return values;
}
