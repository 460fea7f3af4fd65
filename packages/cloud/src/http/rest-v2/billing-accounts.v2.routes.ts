import { dollars } from '../../domain/money.ts';
import type { Caller } from '../../domain/caller.ts';
import { USAGE_KINDS } from '../../domain/usage-records.ts';
import type { UsageKind, UsageTotal } from '../../domain/usage-records.ts';
import { partAmount, totalAmount } from '../../metering/billing.ts';
import type { AllServices } from '../../resources/resources.ts';
import { BerthError } from '../../support/errors.ts';
import { csvText } from '../../support/csv.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, number, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { bucketTimes, readWindow, windowFields } from './billing.v2.schema.ts';
import { dateTime } from './common.v2.schema.ts';

const windowQuery = object({}, windowFields);
const accountRecord = named(
  'AccountBillingRecord',
  object({
    startTime: dateTime('Inclusive'),
    endTime: dateTime('Exclusive'),
    accountId: text(),
    accountName: text(),
    totalAmount: number({ description: 'US dollars for all of it' }),
    podAmount: number({ description: 'US dollars for pods' }),
    serverlessAmount: number({ description: 'US dollars for workers of endpoints' }),
    volumeAmount: number({ description: 'US dollars for network volumes' }),
    clusterAmount: number({ description: 'US dollars for clusters' }),
  }),
);
const GROUPINGS = ['kind', 'resource', 'account'] as const;
const shared = {
  method: 'GET' as const,
  tag: 'Billing',
  queryErrorsAreRuleErrors: true as const,
  status: 200 as const,
  errorStatuses: [400],
};

const CSV_COLUMNS = [
  'startTime',
  'endTime',
  'accountId',
  'kind',
  'resourceId',
  'gpuAmount',
  'cpuAmount',
  'diskAmount',
  'totalAmount',
] as const;
type CsvRow = Record<(typeof CSV_COLUMNS)[number], string | number>;

type BillingServices = Pick<AllServices, 'billing' | 'accounts'>;

/** What all accounts cost, for operators; and every history as a table for other programs. */
export function accountBillingOperations(services: BillingServices): Operation[] {
  const { billing, accounts } = services;
  return [
    operation({
      ...shared,
      id: 'listAccountBilling',
      path: '/billing/accounts',
      summary: 'What every account used and cost, by account',
      description: 'One record for each account and bucket in which something was used. For operators.',
      access: 'operator',
      query: windowQuery,
      response: named('AccountBillingList', object({ records: list(accountRecord) })),
      handle: async ({ caller, query }) => {
        const known = await accounts.list(caller);
        const names = new Map(known.map(({ id, name }) => [id, name]));
        const { window, byAccount } = await billing.summaries(caller, [...names.keys()], readWindow(query));
        const records = window.buckets.flatMap(({ start, end }) =>
          [...byAccount].flatMap(([accountId, byKind]) => {
            const inBucket = (kind: UsageKind): UsageTotal[] =>
              byKind[kind].filter((total) => total.start === start);
            const all = USAGE_KINDS.flatMap(inBucket);
            if (all.length === 0) return [];
            const amountOf = (kind: UsageKind): number => dollars(totalAmount(inBucket(kind)));
            return [
              {
                ...bucketTimes(start, end),
                accountId,
                accountName: names.get(accountId) ?? '',
                totalAmount: dollars(totalAmount(all)),
                podAmount: amountOf('pod'),
                serverlessAmount: amountOf('serverless'),
                volumeAmount: amountOf('volume'),
                clusterAmount: amountOf('cluster'),
              },
            ];
          }),
        );
        return { records };
      },
    }),
    operation({
      ...shared,
      id: 'exportBilling',
      path: '/billing/export',
      summary: 'What was used and cost, as CSV',
      description:
        'One line for each bucket and each kind of usage, each resource, or each account and kind. By ' +
        'account it is for operators.',
      access: 'read',
      text: 'text/csv',
      headers: { 'content-disposition': 'attachment; filename="billing.csv"' },
      query: object(
        {},
        {
          ...windowFields,
          by: stringEnum(GROUPINGS, { default: 'kind', description: 'What a line is about' }),
        },
      ),
      handle: async ({ caller, query }) =>
        csvText(CSV_COLUMNS, await csvRows(services, caller, query)) as never,
    }),
  ];
}

async function csvRows(
  { billing, accounts }: BillingServices,
  caller: Caller,
  { by = 'kind', ...window }: Static<typeof windowQuery> & { by?: (typeof GROUPINGS)[number] },
): Promise<CsvRow[]> {
  const query = readWindow(window);
  const { accountId } = caller;
  switch (by) {
    case 'kind':
      return summaryRows(accountId, (await billing.summary(caller, query)).byKind);
    case 'resource': {
      const kinds = await Promise.all(
        USAGE_KINDS.map(async (kind) => {
          const { totals } = await billing.history(caller, kind, { ...query, grouping: 'resource' });
          return totals.map((total) => csvRow(accountId, kind, total));
        }),
      );
      return kinds.flat();
    }
    case 'account': {
      if (!caller.operator)
        throw new BerthError(
          'forbidden',
          'access denied: this needs a key with full access of the root account',
        );
      const ids = (await accounts.list(caller)).map(({ id }) => id);
      const { byAccount } = await billing.summaries(caller, ids, query);
      return [...byAccount].flatMap(([id, byKind]) => summaryRows(id, byKind));
    }
  }
}

function summaryRows(accountId: string, byKind: Record<UsageKind, UsageTotal[]>): CsvRow[] {
  return USAGE_KINDS.flatMap((kind) => byKind[kind].map((total) => csvRow(accountId, kind, total)));
}

function csvRow(accountId: string, kind: UsageKind, total: UsageTotal): CsvRow {
  const part = (...parts: Parameters<typeof partAmount>[1][]): number =>
    dollars(parts.reduce((sum, name) => sum + partAmount([total], name), 0n));
  return {
    ...bucketTimes(total.start, total.end),
    accountId,
    kind,
    resourceId: total.group,
    gpuAmount: part('gpu'),
    cpuAmount: part('cpu'),
    diskAmount: part('disk', 'fastDisk'),
    totalAmount: dollars(totalAmount([total])),
  };
}
