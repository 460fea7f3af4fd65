import { ACCOUNT_DEFAULTS } from '../packages/cloud/src/domain/records.ts';
import { Billing } from '../packages/cloud/src/metering/billing.ts';
import type { HistoryQuery } from '../packages/cloud/src/metering/billing.ts';
import { openStore } from '../packages/cloud/src/store/open-store.ts';
import type { Store } from '../packages/cloud/src/store/store.ts';
import type { AuditEntry } from '../packages/cloud/src/domain/records.ts';
import type { Caller } from '../packages/cloud/src/domain/caller.ts';
import { Sealer } from '../packages/cloud/src/support/crypto.ts';
import {
  recountUsage,
  simulateUsageYear,
  SIMULATED_YEAR,
} from '../packages/testing/src/simulated-usage-year.ts';
import type { PodUsageYear } from '../packages/testing/src/simulated-usage-year.ts';
import type { BenchContext, Database } from './support/bench-context.ts';
import { ratio } from './support/bench-report.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';

const PODS = 10_000;
const ACCOUNT = 'bench';
const BATCH_SIZE = 500;
const BAR = 50;
const ROUND_MS = 400;
const CALLER: Caller = {
  accountId: ACCOUNT,
  keyId: null,
  operator: false,
  fullAccess: true,
  interface: 'rest-v2',
  requestId: '',
};
const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();
const YEAR_QUERY = { startTime: iso(SIMULATED_YEAR.start), endTime: iso(SIMULATED_YEAR.end) };
const QUERIES: { name: string; wish: HistoryQuery; barred: boolean }[] = [
  { name: 'the year by month', wish: { ...YEAR_QUERY, bucketSize: 'month', grouping: 'none' }, barred: true },
  { name: 'the year by day', wish: { ...YEAR_QUERY, bucketSize: 'day', grouping: 'none' }, barred: true },
  {
    name: 'the year by month and GPU type',
    wish: { ...YEAR_QUERY, bucketSize: 'month', grouping: 'gpuType' },
    barred: false,
  },
  {
    name: 'one pod, by day',
    wish: { ...YEAR_QUERY, bucketSize: 'day', grouping: 'resource', filter: { resourceId: 'pod7' } },
    barred: false,
  },
  {
    name: 'the year by pod, 10,000 records',
    wish: { ...YEAR_QUERY, bucketSize: 'year', grouping: 'resource' },
    barred: false,
  },
];

/**
 * A year of ten thousand pods is written through the ledger, counted again from its events, and asked for.
 */
export async function ledger(bench: BenchContext): Promise<void> {
  const { report, rounds } = bench;
  report.part(
    'ledger',
    `the history of ${PODS.toLocaleString('en-US')} simulated pods over a year, beside one indexed ` +
      'lookup (an account by its id) in the same store',
  );
  const pods = simulateUsageYear(PODS, numbers(), ACCOUNT);
  const events = pods.flatMap(({ changes }) => changes).sort((one, other) => one.at - other.at);
  for (const database of ['SQLite', 'PostgreSQL'] as const) {
    await withCleanup(async (scope) => {
      const store = await opened(bench, scope, database);
      const began = performance.now();
      for (let index = 0; index < events.length; index += BATCH_SIZE)
        await store.ledger.recordUsage(events.slice(index, index + BATCH_SIZE));
      report.print(
        `\n${database}: ${events.length.toLocaleString('en-US')} events written in ` +
          `${((performance.now() - began) / 1000).toFixed(1)} s`,
      );
      const billing = new Billing(store.ledger, { now: () => SIMULATED_YEAR.end });
      const difference = await differences(billing, pods);
      report.bar({
        part: 'ledger',
        what: `${database}: days that differ from a recount of the events`,
        bar: '0',
        measured: String(difference),
        met: difference === 0,
      });
      const lookups: number[] = [];
      const histories = QUERIES.map(() => [] as number[]);
      for (let round = 0; round < rounds; round += 1) {
        lookups.push(await perCall(() => store.accounts.find(ACCOUNT)));
        for (const [index, { wish }] of QUERIES.entries())
          histories[index]?.push(await perCall(() => billing.history(CALLER, 'pod', wish)));
      }
      report.figures(`${database}, one call`, { name: ' µs', better: 'lower', digits: 1 }, [
        { name: 'an indexed lookup', values: lookups },
        ...QUERIES.map(({ name }, index) => ({ name, values: histories[index] ?? [] })),
      ]);
      for (const [index, { name, barred }] of QUERIES.entries()) {
        const times = ratio(histories[index] ?? [], lookups);
        report.bar({
          part: 'ledger',
          what: `${database}: ${name}, in lookups`,
          bar: barred ? `< ${BAR}` : '',
          measured: times.toFixed(1),
          met: barred ? times < BAR : undefined,
        });
      }
    });
  }
}

async function opened(bench: BenchContext, scope: CleanupScope, database: Database): Promise<Store> {
  const store = await openStore({
    database: database === 'SQLite' ? '' : (await bench.database(scope)).url,
    data: scope.folder('ledger'),
    poolSize: 2,
    sealer: new Sealer(Buffer.alloc(32, 7)),
    onError: (error) => {
      throw error;
    },
  });
  scope.defer(() => store.close());
  const audit: AuditEntry = {
    at: 1,
    accountId: ACCOUNT,
    keyId: null,
    interface: 'system',
    requestId: '',
    action: 'create',
    resource: 'account',
    resourceId: ACCOUNT,
    changes: [],
  };
  const key = {
    id: 'key',
    accountId: ACCOUNT,
    name: 'key',
    hash: 'hash',
    access: 'all' as const,
    scopes: { rest: 'write', graphql: 'write', serverless: 'write' } as const,
    endpoints: null,
    enabled: true,
    root: false,
    createdAt: 1,
    lastUsedAt: null,
    expiresAt: null,
  };
  await store.accounts.insert({ id: ACCOUNT, name: ACCOUNT, ...ACCOUNT_DEFAULTS, createdAt: 1 }, key, audit);
  return store;
}

/** How many days of the year are not what the events say. */
async function differences(billing: Billing, pods: readonly PodUsageYear[]): Promise<number> {
  const { totals } = await billing.history(CALLER, 'pod', {
    ...YEAR_QUERY,
    bucketSize: 'day',
    grouping: 'none',
  });
  const found = new Map(
    totals.map(({ start, amounts, seconds }) => [
      `${start} `,
      JSON.stringify({ ...texts(amounts), seconds }),
    ]),
  );
  const counted = recountUsage(pods, 'day', () => '');
  return new Set([...found.keys(), ...counted.keys()])
    .values()
    .filter((day) => {
      const entry = counted.get(day);
      return (
        entry === undefined ||
        found.get(day) !== JSON.stringify({ ...texts(entry.amounts), seconds: entry.seconds })
      );
    })
    .toArray().length;
}

function texts(amounts: Record<string, bigint>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([part, amount]) => [part, String(amount)]));
}

/** Microseconds of one call, over many in a row. */
async function perCall(call: () => Promise<unknown>): Promise<number> {
  for (let warm = 0; warm < 5; warm += 1) await call();
  const began = performance.now();
  let calls = 0;
  while (performance.now() - began < ROUND_MS) {
    await call();
    calls += 1;
  }
  return ((performance.now() - began) * 1000) / calls;
}

/** The same year every time. */
function numbers(): () => number {
  let state = 8484;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
