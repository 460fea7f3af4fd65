import type { BenchContext } from './support/bench-context.ts';
import { startPythonServer } from './peers/python-server.ts';
import { JOB_BODY } from './support/job-body.ts';
import { repositoryPath } from './support/repository-path.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { startProgram } from './support/child-program.ts';
import { startRedis } from './support/bench-redis.ts';
import { MICROSECONDS, PER_SECOND, ratio } from './support/bench-report.ts';
import type { Contender } from './support/interleaved-rounds.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { runLoad } from './support/wrk.ts';

const CONNECTIONS = 64;
/** What runs is compiled by then, on every side. */
const WARM_SECONDS = 3;
const BARS = { echo: 0.6, bullmq: 1.5 };
const [ECHO, BULLMQ, PYTHON, SQLITE, SQLITE_WITHOUT_FAST_PATH, POSTGRES] = [
  'bare node:http',
  'Fastify + BullMQ + Redis',
  "the Python SDK's local server, in memory",
  'Berth, SQLite',
  'Berth, SQLite, fast path off',
  'Berth, PostgreSQL',
];

export async function accept(bench: BenchContext): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part('accept', `POST /run over ${CONNECTIONS} connections, ${seconds} s a round`);
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'accept');
  await withCleanup(async (scope) => {
    const costs = new Map<string, number[]>();
    const side = async (name: string, { url, key, pids }: Target): Promise<Contender> => {
      const run = (length: number) =>
        runLoad({
          url,
          body: JOB_BODY,
          connections: CONNECTIONS,
          seconds: length,
          ...(key !== undefined && { key }),
        });
      await run(WARM_SECONDS);
      const used = (): number => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
      const measure = async (): Promise<number> => {
        const before = used();
        const { perSecond, requests } = await run(seconds);
        costs.set(name, [...(costs.get(name) ?? []), ((used() - before) / requests) * 1e6]);
        return perSecond;
      };
      return { name, measure };
    };
    const echo = await bench.bareHttpServer(scope);
    const sides = [await side(ECHO, { url: echo.url, pids: [echo.pid] })];
    if (tools.redis) sides.push(await side(BULLMQ, await fastifyWithBullmq(scope)));
    else report.missingTool('redis-server', 'apt install redis-server', 'accept beside BullMQ');
    const python = await bench.pythonSdk();
    if ('path' in python) sides.push(await side(PYTHON, await pythonServer(scope, python.path)));
    else report.missingTool('the Python worker SDK', python.reason, 'accept beside its local server');
    for (const [name, database, fastPath] of [
      [SQLITE, 'SQLite', 'on'],
      [SQLITE_WITHOUT_FAST_PATH, 'SQLite', 'off'],
      [POSTGRES, 'PostgreSQL', 'on'],
    ] as const) {
      const { url, key, pid, endpointId } = await bench.berth(scope, database, { BERTH_FAST_PATH: fastPath });
      sides.push(await side(name, { url: `${url}/v2/${endpointId}/run`, key, pids: [pid] }));
    }
    const figures = await measureInterleaved(rounds, sides);
    report.figures('jobs accepted', PER_SECOND, figures);
    // Beside a rate, which other work on the machine lowers, this is what a job costs.
    report.figures(
      'processor time for each, of the server process (with BullMQ, of Redis too; without PostgreSQL)',
      MICROSECONDS,
      [...costs].map(([name, values]) => ({ name, values })),
    );
    const berth = valuesOf(figures, SQLITE);
    const ofEcho = ratio(berth, valuesOf(figures, ECHO));
    report.bar({
      part: 'accept',
      what: 'SQLite, fast path on, of a bare node:http server',
      bar: `>= ${BARS.echo} (aim 0.9)`,
      measured: ofEcho.toFixed(2),
      met: ofEcho >= BARS.echo,
    });
    const withoutFastPath = valuesOf(figures, SQLITE_WITHOUT_FAST_PATH);
    report.print(
      `\nWith the fast path off, Berth accepts ` +
        `${ratio(withoutFastPath, valuesOf(figures, ECHO)).toFixed(2)} of the bare ` +
        `server${tools.redis ? ` and ${ratio(withoutFastPath, valuesOf(figures, BULLMQ)).toFixed(2)} x Fastify + BullMQ` : ''} ` +
        '(no bar)',
    );
    if ('path' in python) {
      const beside = [SQLITE, POSTGRES].map(
        (name) =>
          `${ratio(valuesOf(figures, name), valuesOf(figures, PYTHON)).toFixed(1)} x on ` +
          `${name === SQLITE ? 'SQLite' : 'PostgreSQL'}`,
      );
      report.print(
        `\nBerth beside the Python SDK's local server, which keeps jobs in memory only: ${beside.join(', ')} (no bar)`,
      );
    }
    if (!tools.redis) return;
    const ofBullmq = ratio(berth, valuesOf(figures, BULLMQ));
    report.bar({
      part: 'accept',
      what: 'SQLite, fast path on, beside Fastify + BullMQ',
      bar: `>= ${BARS.bullmq} x`,
      measured: `${ofBullmq.toFixed(2)} x`,
      met: ofBullmq >= BARS.bullmq,
    });
    const onPostgres = ratio(valuesOf(figures, POSTGRES), valuesOf(figures, BULLMQ));
    report.print(
      `\nBerth on PostgreSQL: ${onPostgres.toFixed(2)} x Fastify + BullMQ, ` +
        `${ratio(valuesOf(figures, POSTGRES), valuesOf(figures, ECHO)).toFixed(2)} of the bare server ` +
        '(no bar)',
    );
  });
}

interface Target {
  url: string;
  key?: string;
  /** The processes whose time counts. */
  pids: number[];
}

async function fastifyWithBullmq(scope: CleanupScope): Promise<Target> {
  const redis = await startRedis(scope);
  const server = await startProgram({
    command: process.execPath,
    args: [repositoryPath('bench/peers/fastify-bullmq.ts'), String(redis.port)],
    ready: /up at (\S+)$/,
  });
  scope.defer(server.stop);
  return { url: `${server.match[1]}/run`, pids: [server.pid, redis.pid] };
}

async function pythonServer(scope: CleanupScope, python: string): Promise<Target> {
  const { url, pid } = await startPythonServer(scope, python);
  return { url: `${url}/run`, pids: [pid] };
}
