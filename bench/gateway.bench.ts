import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { BenchContext } from './support/bench-context.ts';
import { startBerth } from './support/berth-process.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { JOB_BODY } from './support/job-body.ts';
import { repositoryPath } from './support/repository-path.ts';
import { MILLISECONDS, PER_SECOND, ratio, formatValue } from './support/bench-report.ts';
import type { Figures } from './support/bench-report.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { median } from './support/statistics.ts';
import { runLoad } from './support/wrk.ts';
import { findNginx, startNginx } from './peers/nginx.ts';

const MANY = 64;
const FEW = 8;
/** A server that was just started is slower for its first seconds; this is about one that runs. */
const WARM_UP_S = 4;
const BARS = { ofNginx: 0.4, addedMs: 1.5 };
const CHUNKS = 10_000;
const [DIRECT, NGINX, BERTH] = ['the worker itself', 'nginx', 'Berth'];

interface Side {
  name: string;
  url: string;
  key?: string;
}

export async function gateway(bench: BenchContext): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part(
    'gateway',
    `requests to one load balanced worker, through Berth and through nginx, ${seconds} s a round`,
  );
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'gateway');
  const nginx = findNginx();
  if (nginx === undefined) return report.missingTool('nginx', 'apt install nginx-light', 'gateway');
  await withCleanup(async (scope) => {
    const berth = await startBerth({ data: scope.folder('data'), database: '' });
    scope.defer(berth.stop);
    const endpointId = await createBalanced(berth);
    scope.defer(() => removeEndpoint(berth, endpointId));
    const base = `${berth.url}/v2/${endpointId}`;
    const port = Number(
      await (await fetch(`${base}/port`, { headers: { authorization: `Bearer ${berth.key}` } })).text(),
    );
    report.print(
      `nginx ${nginx.version}, one process; the worker is a bare node:http server on the process ` +
        'engine, and is the same for all',
    );
    const sides: Side[] = [
      { name: DIRECT, url: `http://127.0.0.1:${port}` },
      { name: NGINX, url: await startNginx(nginx, scope, port) },
      { name: BERTH, url: base, key: berth.key },
    ];
    const asked =
      (connections: number, forSeconds: number) =>
      ({ url, key }: Side) =>
        runLoad({
          url: `${url}/`,
          body: JOB_BODY,
          connections,
          seconds: forSeconds,
          ...(key !== undefined && { key }),
        });
    for (const side of sides) await asked(MANY, WARM_UP_S)(side);

    const many = await measured(rounds, sides, asked(MANY, seconds));
    report.figures(`requests per second, ${MANY} connections`, PER_SECOND, many.rates);
    report.figures(`p99, ${MANY} connections`, MILLISECONDS, many.p99);
    const few = await measured(rounds, sides, asked(FEW, seconds));
    report.figures(`requests per second, ${FEW} connections`, PER_SECOND, few.rates);
    report.figures(`p50, ${FEW} connections`, MILLISECONDS, few.p50);
    report.figures(`p99, ${FEW} connections`, MILLISECONDS, few.p99);

    const ofNginx = ratio(valuesOf(many.rates, BERTH), valuesOf(many.rates, NGINX));
    report.bar({
      part: 'gateway',
      what: `requests per second of nginx's, ${MANY} connections`,
      bar: `>= ${BARS.ofNginx}`,
      measured: ofNginx.toFixed(2),
      met: ofNginx >= BARS.ofNginx,
    });
    const added = median(valuesOf(few.p50, BERTH)) - median(valuesOf(few.p50, DIRECT));
    report.bar({
      part: 'gateway',
      what: `added to the worker's own p50, ${FEW} connections`,
      bar: `<= ${BARS.addedMs} ms`,
      measured: formatValue(added, MILLISECONDS),
      met: added <= BARS.addedMs,
    });
    await streams(bench, sides);
  });
}

async function streams({ report, rounds }: BenchContext, sides: readonly Side[]): Promise<void> {
  const expected = Array.from({ length: CHUNKS }, (_, number) => eventText(number)).join('');
  const wrong = new Set<string>();
  const check = (side: Side, what: string, got: string): void => {
    if (got !== expected)
      wrong.add(
        `${what} through ${side.name}: ${got.length} of ${expected.length} ` +
          `characters${expected.startsWith(got) ? '' : ', and not the same'}`,
      );
  };
  const events = await measureInterleaved(
    rounds,
    sides.map((side) => ({
      name: side.name,
      measure: () => timed(async () => check(side, 'events', await fetched(side, `/events?${CHUNKS}`))),
    })),
  );
  report.figures(`${CHUNKS} server-sent events, each a chunk`, MILLISECONDS, events);
  const back = await measureInterleaved(
    rounds,
    sides.map((side) => ({
      name: side.name,
      measure: () =>
        timed(async () => check(side, 'chunks there and back', await fetched(side, '/back', CHUNKS))),
    })),
  );
  report.figures(`${CHUNKS} chunks sent there and back`, MILLISECONDS, back);
  if (wrong.size > 0) report.print([...wrong].join('\n'));
  report.bar({
    part: 'gateway',
    what: `${CHUNKS} chunks each way, ${rounds} times`,
    bar: 'whole and in order',
    measured: wrong.size === 0 ? 'all' : `${wrong.size} not`,
    met: wrong.size === 0,
  });
}

function eventText(number: number): string {
  return `id: ${number}\ndata: {"token":"word ${number}"}\n\n`;
}

/** The answer as it came; with `chunks`, the request sends so many of them. */
function fetched({ url, key }: Side, path: string, chunks = 0): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request(`${url}${path}`, {
      method: chunks === 0 ? 'GET' : 'POST',
      agent: false,
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    });
    asking.on('error', reject);
    asking.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response
        .on('error', reject)
        .on('end', () =>
          response.statusCode === 200
            ? resolve(text)
            : reject(new Error(`${path} answered ${response.statusCode} ${text}`)),
        );
    });
    let next = 0;
    const send = (): void => {
      while (next < chunks) {
        next += 1;
        if (!asking.write(eventText(next - 1))) return;
      }
      asking.off('drain', send);
      asking.end();
    };
    asking.on('drain', send);
    send();
  });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

async function measured(
  rounds: number,
  sides: readonly Side[],
  ask: (side: Side) => ReturnType<typeof runLoad>,
): Promise<{ rates: Figures[]; p50: Figures[]; p99: Figures[] }> {
  const empty = (): { name: string; values: number[] }[] => sides.map(({ name }) => ({ name, values: [] }));
  const [rates, p50, p99] = [empty(), empty(), empty()];
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, side] of sides.entries()) {
      const figures = await ask(side);
      rates[index]?.values.push(figures.perSecond);
      p50[index]?.values.push(figures.p50);
      p99[index]?.values.push(figures.p99);
    }
  }
  return { rates, p50, p99 };
}

async function createBalanced(berth: BerthProcess): Promise<string> {
  const files = [
    {
      path: 'server.ts',
      data: readFileSync(repositoryPath('bench/workers/bare-load-balanced-worker.ts')).toString('base64'),
    },
    {
      path: 'berth.json',
      data: Buffer.from(JSON.stringify({ command: ['node', 'server.ts'] })).toString('base64'),
    },
  ];
  const { image } = await call<{ image: string }>(berth, 'POST', '/v2/images', { name: 'gateway', files });
  const { id } = await call<{ id: string }>(berth, 'POST', '/v2/serverless', {
    name: 'gateway',
    type: 'LOAD_BALANCER',
    image,
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'REQUEST_COUNT', requestCount: 1000 },
    workers: { min: 1, max: 1 },
  });
  return id;
}

async function removeEndpoint(berth: BerthProcess, endpointId: string): Promise<void> {
  await call(berth, 'DELETE', `/v2/serverless/${endpointId}`);
}

async function call<T>({ url, key }: BerthProcess, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
