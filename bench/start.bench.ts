import type { BenchContext } from './support/bench-context.ts';
import { startBerth } from './support/berth-process.ts';
import { repositoryPath } from './support/repository-path.ts';
import { residentMegabytes } from './support/process-usage.ts';
import { startProgram } from './support/child-program.ts';
import { MILLISECONDS, formatValue } from './support/bench-report.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { median } from './support/statistics.ts';

const ROUNDS = 7;
const IDLE_MS = 5_000;
const MOST_MEMORY = 120;
const ALLOWED = { factor: 1.5, milliseconds: 300 };

interface Started {
  url: string;
  stop(): Promise<void>;
}

/** From the start of the process to the first good answer of `/healthz`. */
async function timeToAnswer(start: () => Promise<Started>): Promise<number> {
  const before = performance.now();
  const { url, stop } = await start();
  const { status } = await fetch(`${url}/healthz`);
  const taken = performance.now() - before;
  await stop();
  if (status !== 200) throw new Error(`/healthz answered ${status}`);
  return taken;
}

export async function start({ report }: BenchContext): Promise<void> {
  report.part('start', 'from the start of the process to the first 200 of /healthz, warm file caches');
  await withCleanup(async (scope) => {
    const data = scope.folder('start');
    const again = (): Promise<Started> => startBerth({ data, database: '' });
    const anew = (): Promise<Started> => startBerth({ data: scope.folder('start'), database: '' });
    const fastify = async (): Promise<Started> => {
      const { match, stop } = await startProgram({
        command: process.execPath,
        args: [repositoryPath('bench/peers/bare-fastify.mjs')],
        ready: /up at (\S+)$/,
      });
      return { url: match[1] ?? '', stop };
    };
    for (const warm of [again, fastify]) await timeToAnswer(warm);
    const figures = await measureInterleaved(ROUNDS, [
      { name: 'bare Fastify', measure: () => timeToAnswer(fastify) },
      { name: 'Berth', measure: () => timeToAnswer(again) },
      { name: 'Berth, first start in a new folder', measure: () => timeToAnswer(anew) },
    ]);
    report.figures('time to the first answer', MILLISECONDS, figures);
    const [bare, berth] = [median(valuesOf(figures, 'bare Fastify')), median(valuesOf(figures, 'Berth'))];
    const allowed = bare * ALLOWED.factor + ALLOWED.milliseconds;
    report.bar({
      part: 'start',
      what: 'time to the first answer',
      bar: `<= 1.5 x Fastify + 300 ms (${formatValue(allowed, MILLISECONDS)})`,
      measured: formatValue(berth, MILLISECONDS),
      met: berth <= allowed,
    });

    const server = await startBerth({ data, database: '' });
    await fetch(`${server.url}/healthz`);
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const memory = residentMegabytes(server.pid);
    await server.stop();
    report.print(`\nresident memory, idle for 5 s: ${memory.toFixed(0)} MB`);
    report.bar({
      part: 'start',
      what: 'resident memory, idle',
      bar: `< ${MOST_MEMORY} MB`,
      measured: `${memory.toFixed(0)} MB`,
      met: memory < MOST_MEMORY,
    });
  });
}
