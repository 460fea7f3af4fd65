import type { BenchContext } from './support/bench-context.ts';
import { formatValue, MILLISECONDS, PER_SECOND, ratio } from './support/bench-report.ts';
import type { Figures, Unit } from './support/bench-report.ts';
import { createEndpoint } from './support/berth-process.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { valuesOf } from './support/interleaved-rounds.ts';
import { median } from './support/statistics.ts';
import { waitUntilIdle } from './support/wait-until-idle.ts';
import { fillByRun } from './queues/berth-queue.ts';
import { measurePythonSide, pythonPeers } from './peers/python-peers.ts';
import type { PythonMeasure, PythonMeasured } from './peers/python-peers.ts';

const BARS = { unchanged: 50, drain: 1_500, timesCelery: 2, runsyncMs: 3, chunks: 5_000 };
/** Enough for the time of a round, which a run ends with too. */
const JOBS = { direct: 1_000_000, peer: 3_000, unchanged: 3_000, fast: 20_000 };
const CALLS = { calls: 400, warm: 200 };
/** A call takes a second there. */
const SLOW_CALLS = { calls: 5, warm: 2 };
/** Its first answers bring few jobs, until the times of jobs are known. */
const UNCHANGED_SECONDS = 10;
const CHUNKS = { fast: 50_000, unchanged: 1_000 };

/** One way to run the handler. */
interface Side {
  name: string;
  /** Peers have no streams. */
  measures: Partial<Record<PythonMeasure, () => Promise<PythonMeasured>>>;
}

export async function python(bench: BenchContext): Promise<void> {
  const { report, rounds, seconds } = bench;
  report.part(
    'python',
    'one Python worker with a no-op handler: queued jobs per second, warm round trips, chunks of a stream',
  );
  const sdk = await bench.pythonSdk();
  if ('reason' in sdk) return report.missingTool('the Python worker SDK', sdk.reason, 'python');
  await withCleanup(async (scope) => {
    const berth = await bench.berth(scope, 'SQLite');
    const peers = await pythonPeers(bench, { jobs: JOBS.peer, seconds, ...CALLS });
    const celery = peers.map(({ name }) => name).filter((name) => name.startsWith('Celery'));
    const unchanged = berthSide(berth, seconds, 'public SDK, unchanged', { sdk: 'runpod', python: sdk.path });
    const fast = [
      berthSide(berth, seconds, 'public SDK, accelerated', {
        sdk: 'runpod',
        python: sdk.path,
        accelerate: true,
      }),
      berthSide(berth, seconds, 'berth-worker', { sdk: 'berth_worker' }),
    ];
    const sides = [direct(), ...peers, localServer(seconds, sdk.path), unchanged, ...fast];

    const drained = (await measureAll(rounds, sides, 'drain'))('rate');
    report.figures('queued jobs', PER_SECOND, drained);
    const calls = await measureAll(rounds, sides, 'runsync');
    const called = calls('p50');
    report.figures('round trip, p50', MILLISECONDS, called);
    report.figures('round trip, p99', MILLISECONDS, calls('p99'));
    const streamed = (await measureAll(rounds, sides, 'stream'))('rate');
    report.figures('chunks of a stream, in order', PER_SECOND, streamed);

    const bar = (what: string, text: string, measured: string, met: boolean): void =>
      report.bar({ part: 'python', what, bar: text, measured, met });
    const least = (what: string, figures: Figures[], side: Side, limit: number, aim = ''): void => {
      const found = median(valuesOf(figures, side.name));
      bar(`${side.name}, ${what}`, `>= ${limit}/s${aim}`, formatValue(found, PER_SECOND), found >= limit);
    };
    least('drain', drained, unchanged, BARS.unchanged, ' (aim 200)');
    for (const side of fast) {
      least('drain', drained, side, BARS.drain);
      const p50 = median(valuesOf(called, side.name));
      bar(
        `${side.name}, p50 of runsync`,
        `<= ${BARS.runsyncMs} ms`,
        formatValue(p50, MILLISECONDS),
        p50 <= BARS.runsyncMs,
      );
      least('chunks', streamed, side, BARS.chunks);
      if (celery.length === 0) continue;
      const times = ratio(valuesOf(drained, side.name), best(drained, celery, PER_SECOND));
      bar(
        `${side.name}, drain`,
        `>= ${BARS.timesCelery} x Celery`,
        `${times.toFixed(1)} x`,
        times >= BARS.timesCelery,
      );
      const share = ratio(valuesOf(called, side.name), best(called, celery, MILLISECONDS));
      bar(`${side.name}, p50 of runsync`, '<= 1 x Celery', `${share.toFixed(2)} x`, share <= 1);
    }
  });
}

/** Every side in turn, in every round. Answers the figures of one of the values that the sides report. */
async function measureAll(
  rounds: number,
  sides: readonly Side[],
  measure: PythonMeasure,
): Promise<(value: keyof PythonMeasured) => Figures[]> {
  const found = sides.flatMap(({ name, measures }) => {
    const run = measures[measure];
    return run === undefined ? [] : [{ name, run, results: [] as PythonMeasured[] }];
  });
  for (let round = 0; round < rounds; round += 1)
    for (const { run, results } of found) results.push(await run());
  return (value) =>
    found.map(({ name, results }) => ({ name, values: results.map((result) => result[value] ?? NaN) }));
}

function direct(): Side {
  const run = (measure: PythonMeasure) => () =>
    measurePythonSide('python3', 'direct', measure, { jobs: JOBS.direct, chunks: CHUNKS.fast, ...CALLS });
  return {
    name: 'a direct call',
    measures: { drain: run('drain'), runsync: run('runsync'), stream: run('stream') },
  };
}

function localServer(seconds: number, path: string): Side {
  const run = (measure: PythonMeasure) => () =>
    measurePythonSide(path, 'local_server', measure, { seconds, chunks: CHUNKS.fast, ...CALLS });
  return {
    name: "public SDK's local server",
    measures: { drain: run('drain'), runsync: run('runsync'), stream: run('stream') },
  };
}

/** A worker of its own on an endpoint of its own, for every measurement. */
function berthSide(
  berth: BerthProcess,
  seconds: number,
  name: string,
  options: { sdk: string; accelerate?: boolean; python?: string },
): Side {
  const isFast = options.sdk === 'berth_worker' || options.accelerate === true;
  const jobs = isFast ? JOBS.fast : JOBS.unchanged;
  const run = (measure: PythonMeasure) => async (): Promise<PythonMeasured> => {
    const endpoint = await createEndpoint(berth, `python-${measure}`);
    if (measure === 'drain') {
      await fillByRun(berth, endpoint, jobs);
      await waitUntilIdle();
    }
    return measurePythonSide('python3', 'berth', measure, {
      ...options,
      url: berth.url,
      key: berth.key,
      endpoint,
      jobs,
      seconds: isFast ? seconds : Math.max(seconds, UNCHANGED_SECONDS),
      chunks: isFast ? CHUNKS.fast : CHUNKS.unchanged,
      ...(isFast ? CALLS : SLOW_CALLS),
    });
  };
  return { name, measures: { drain: run('drain'), runsync: run('runsync'), stream: run('stream') } };
}

function best(figures: readonly Figures[], names: readonly string[], { better }: Unit): number[] {
  return names
    .map((name) => valuesOf(figures, name))
    .reduce((one, other) => (median(other) > median(one) === (better === 'higher') ? other : one));
}
