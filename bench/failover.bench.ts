import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PacedClients } from '../packages/testing/src/paced-clients.ts';
import { PostgresPair } from '../packages/testing/src/postgres-pair.ts';
import { monotonicMs } from '../packages/testing/src/safety/job-history.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { BenchContext } from './support/bench-context.ts';
import { createEchoEndpoint } from './support/takeover.ts';

const SERVERS = 3;
const WORKERS = 4;
const CLIENTS = 20;
const INTERVAL_MS = 100;
/** How long the rate is measured before the primary ends, and how long after it. */
const BEFORE_MS = 10_000;
const AFTER_MS = 20_000;
/** How long nobody is promoted: what an orchestrator takes to notice. */
const NOTICED_AFTER_MS = 2_000;
const WINDOW_MS = 1_000;
const STEP_MS = 100;
const RATE_SHARE = 0.95;
const BAR_MS = 10_000;

/**
 * Three servers on a PostgreSQL that is killed under load: how soon they have their rate again on the standby
 * that takes its place, and whether anything that was acknowledged is lost.
 */
export async function failover({ report }: BenchContext): Promise<void> {
  report.part('failover', `PostgreSQL is killed under load, and its synchronous standby is promoted`);
  const pair = await PostgresPair.start();
  const data = mkdtempSync(join(tmpdir(), 'berth-failover-'));
  try {
    const servers = await SeveralServers.start(SERVERS, {
      database: { kind: 'postgres', data, url: pair.primaryUrl, drop: async () => undefined },
    });
    try {
      await measure(pair, servers, report);
    } finally {
      await servers.stop();
    }
  } finally {
    await pair.stop();
    rmSync(data, { recursive: true });
  }
}

async function measure(
  pair: PostgresPair,
  servers: SeveralServers,
  report: BenchContext['report'],
): Promise<void> {
  const endpointId = await createEchoEndpoint(servers.slots[1]?.server.client(), 'failover', WORKERS);
  const [first] = servers.slots;
  if (first === undefined) throw new Error('there is no server');
  const clients = new PacedClients({
    urls: () => servers.slots.map(({ server }) => server.url),
    key: first.server.key,
    endpointId,
    clients: CLIENTS,
    intervalMs: INTERVAL_MS,
  });
  clients.start();
  await pause(3_000);
  const began = monotonicMs();
  await pause(BEFORE_MS);
  const before = clients.rate(began, monotonicMs());
  await pair.addStandby();
  const synchronous = monotonicMs();
  await pause(BEFORE_MS);
  const withStandby = clients.rate(synchronous, monotonicMs());

  const killed = monotonicMs();
  await pair.killPrimary();
  await pause(NOTICED_AFTER_MS);
  const promoting = monotonicMs();
  const url = await pair.promote();
  for (const { cable } of servers.slots) cable.retarget(url);
  const promoted = monotonicMs();
  await pause(AFTER_MS);
  await clients.stop();
  const until = msUntilRate(clients, promoted, Math.max(before, withStandby) * RATE_SHARE);
  const wrong = await clients.wrongEnds();
  const refused = clients.answers.filter(({ status }) => status !== 200);
  const outside = refused.filter(({ at }) => at < killed || at > promoted + BAR_MS).length;
  const otherAnswers = refused.filter(({ status }) => status !== 0 && status !== 503).length;

  report.print(
    `${perSecond(before)} jobs accepted per second on one PostgreSQL, ${perSecond(withStandby)} with a synchronous ` +
      `standby, ${perSecond(clients.rate(promoted + BAR_MS, promoted + AFTER_MS))} on the new primary; the ` +
      `promotion took ${Math.round(promoted - promoting)} ms, ${NOTICED_AFTER_MS} ms after the kill`,
  );
  report.print(
    `${clients.acknowledged.size} jobs acknowledged, ${refused.length} refused, of these ${outside} before the kill ` +
      `or more than ${BAR_MS / 1000} s after the promotion; ${wrong.slice(0, 5).join('; ')}`,
  );
  report.bar({
    part: 'failover',
    what: `95 % of the rate again, after the new primary`,
    bar: `<= ${BAR_MS / 1000} s`,
    measured: until === undefined ? `not in ${AFTER_MS / 1000} s` : `${(until / 1000).toFixed(1)} s`,
    met: until !== undefined && until <= BAR_MS,
  });
  for (const [what, found] of [
    ['acknowledged jobs lost, or ended otherwise than COMPLETED', wrong.length],
    ['answers other than 200 and 503', otherAnswers],
  ] as const)
    report.bar({ part: 'failover', what, bar: '0', measured: String(found), met: found === 0 });
}

/** From the new primary to the end of the first second in which so many jobs were accepted. */
function msUntilRate(clients: PacedClients, promoted: number, wanted: number): number | undefined {
  for (let end = WINDOW_MS; end <= AFTER_MS; end += STEP_MS)
    if (clients.rate(promoted + end - WINDOW_MS, promoted + end) >= wanted) return end;
  return undefined;
}

function perSecond(rate: number): string {
  return rate.toFixed(0);
}
