import { setTimeout as pause } from 'node:timers/promises';
import type { BenchContext, Database } from './support/bench-context.ts';
import { startBerth } from './support/berth-process.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { fillPods } from './support/fill-pods.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { MILLISECONDS, ratio } from './support/bench-report.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';

const [FEW, MANY] = [1_000, 10_000];
const RUNNING = 20;
const WATCH_SECONDS = 20;
const BARS = { list: 15, idle: 0.05 };

/** Reads a whole list, page by page where it has pages. */
const LISTS: Record<string, (berth: BerthProcess) => Promise<number>> = {
  'REST v1': async (berth) => ((await ask(berth, '/v1/pods')) as unknown[]).length,
  'REST v2': async (berth) => {
    let [count, cursor] = [0, ''];
    do {
      const page = (await ask(berth, `/v2/pods?limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`)) as {
        pods: unknown[];
        pagination: { nextCursor: string | null };
      };
      count += page.pods.length;
      cursor = page.pagination.nextCursor ?? '';
    } while (cursor !== '');
    return count;
  },
  GraphQL: async (berth) =>
    (
      (await ask(berth, '/graphql', {
        query: `{ myself { pods { id name desiredStatus imageName costPerHr gpuCount env ports machine {
            gpuDisplayName } } } }`,
      })) as { data: { myself: { pods: unknown[] } } }
    ).data.myself.pods.length,
};

export async function pods(bench: BenchContext): Promise<void> {
  const { report, rounds } = bench;
  report.part(
    'pods',
    `lists of ${FEW.toLocaleString('en-US')} and of ${MANY.toLocaleString('en-US')} pods, and ` +
      `${MANY.toLocaleString('en-US')} at rest, ${RUNNING} of them running`,
  );
  for (const database of ['SQLite', 'PostgreSQL'] as const) {
    await withCleanup(async (scope) => {
      const [few, many] = [
        await filled(bench, scope, database, FEW),
        await filled(bench, scope, database, MANY),
      ];
      for (const [name, list] of Object.entries(LISTS)) {
        const times = { few: [] as number[], many: [] as number[] };
        for (let round = 0; round <= rounds; round += 1) {
          for (const [side, berth, count] of [
            ['few', few, FEW],
            ['many', many, MANY],
          ] as const) {
            const before = performance.now();
            const found = await list(berth);
            if (found !== count) throw new Error(`${name} on ${database} lists ${found} of ${count} pods`);
            // The first round warms up.
            if (round > 0) times[side].push(performance.now() - before);
          }
        }
        report.figures(`a whole list, ${name}, ${database}`, MILLISECONDS, [
          { name: FEW.toLocaleString('en-US'), values: times.few },
          { name: MANY.toLocaleString('en-US'), values: times.many },
        ]);
        const share = ratio(times.many, times.few);
        report.bar({
          part: 'pods',
          what: `list, ${name}, ${database}: ten times as many`,
          bar: `<= ${BARS.list} times`,
          measured: `${share.toFixed(1)} times`,
          met: share <= BARS.list,
        });
      }
      await few.stop();
      for (let started = 0; started < RUNNING; started += 1)
        await ask(many, '/v2/pods', {
          name: 'runs',
          image: 'local/shell',
          args: 'sleep 1000',
          cpu: { id: 'cpu3c', vcpuCount: 2 },
        });
      await pause(5_000);
      const [used, began] = [cpuSeconds(many.pid), performance.now()];
      await pause(WATCH_SECONDS * 1000);
      const share = (cpuSeconds(many.pid) - used) / ((performance.now() - began) / 1000);
      report.print(`\nat rest, ${database}: ${(100 * share).toFixed(1)} % of a core`);
      report.bar({
        part: 'pods',
        what: `at rest, ${database}`,
        bar: `< ${100 * BARS.idle} % of a core`,
        measured: `${(100 * share).toFixed(1)} %`,
        met: share < BARS.idle,
      });
      const { pods: last } = (await ask(many, `/v2/pods?limit=${RUNNING}`)) as {
        pods: { id: string; status: string }[];
      };
      if (last.some(({ status }) => status !== 'RUNNING'))
        throw new Error('not all of the pods that were started run');
      await Promise.all(
        last.map(({ id }) =>
          fetch(`${many.url}/v2/pods/${id}`, {
            method: 'DELETE',
            headers: { authorization: `Bearer ${many.key}` },
          }),
        ),
      );
    });
  }
}

async function filled(
  bench: BenchContext,
  scope: CleanupScope,
  database: Database,
  count: number,
): Promise<BerthProcess> {
  const place = {
    data: scope.folder('pods'),
    database: database === 'SQLite' ? '' : (await bench.database(scope)).url,
    env: { BERTH_DOCKER: 'off' },
  };
  await (await startBerth(place)).stop();
  await fillPods(place, count);
  const berth = await startBerth(place);
  scope.defer(berth.stop);
  return berth;
}

async function ask({ url, key }: BerthProcess, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as unknown;
}
