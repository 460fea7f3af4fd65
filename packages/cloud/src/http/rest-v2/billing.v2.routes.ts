import { partAmount, totalAmount } from '../../metering/billing.ts';
import { dollars } from '../../domain/money.ts';
import type { BillingWindow } from '../../domain/billing-window.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import type { Schema, Static } from '../rest/json-schema.ts';
import { object, text } from '../rest/json-schema.ts';
import { amountFields, billingResponse, bucketTimes, readWindow, windowFields } from './billing.v2.schema.ts';
import type { Amounts, BillingResponse } from './billing.v2.schema.ts';
import type { UsageKind, UsageTotal } from '../../domain/usage-records.ts';

const windowQuery = object({}, windowFields);
const shared = {
  method: 'GET' as const,
  tag: 'Billing',
  access: 'read' as const,
  queryErrorsAreRuleErrors: true as const,
  status: 200 as const,
  errorStatuses: [400],
};

/** What of each kind of usage is shown as which amount. */
const AMOUNTS: Record<UsageKind, (tallies: readonly UsageTotal[]) => Amounts> = {
  pod: (tallies) => ({
    totalAmount: dollars(totalAmount(tallies)),
    gpuAmount: dollars(partAmount(tallies, 'gpu')),
    cpuAmount: dollars(partAmount(tallies, 'cpu')),
    diskAmount: dollars(partAmount(tallies, 'disk')),
  }),
  serverless: (tallies) => ({ ...AMOUNTS.pod(tallies), feeAmount: 0 }),
  volume: (tallies) => ({
    totalAmount: dollars(totalAmount(tallies)),
    standardAmount: dollars(partAmount(tallies, 'disk')),
    highPerformanceAmount: dollars(partAmount(tallies, 'fastDisk')),
  }),
  cluster: (tallies) => ({
    totalAmount: dollars(totalAmount(tallies)),
    gpuAmount: dollars(partAmount(tallies, 'gpu') + partAmount(tallies, 'cpu')),
    diskAmount: dollars(partAmount(tallies, 'disk')),
    networkingAmount: 0,
  }),
};

/** The histories that are by resource. */
interface ResourceHistory {
  id: string;
  path: string;
  summary: string;
  kind: UsageKind;
  idField: string;
  countField: string;
  response: Schema<BillingResponse>;
}

function resourceHistory(
  name: string,
  definition: Omit<ResourceHistory, 'response' | 'id'>,
): ResourceHistory {
  return {
    ...definition,
    id: `list${name}`,
    response: billingResponse(name, amountFields[definition.kind], definition),
  };
}

const volumes = resourceHistory('NetworkVolumeBilling', {
  path: '/billing/network-volumes',
  summary: 'What network volumes cost, by volume',
  kind: 'volume',
  idField: 'networkVolumeId',
  countField: 'uniqueNetworkVolumeCount',
});
const HISTORIES = [
  resourceHistory('PodBilling', {
    path: '/billing/pods',
    summary: 'What pods used and cost, by pod',
    kind: 'pod',
    idField: 'podId',
    countField: 'uniquePodCount',
  }),
  resourceHistory('ServerlessBilling', {
    path: '/billing/serverless',
    summary: 'What serverless endpoints used and cost, by endpoint',
    kind: 'serverless',
    idField: 'serverlessId',
    countField: 'uniqueServerlessCount',
  }),
  volumes,
  {
    ...volumes,
    id: 'listNetworkVolumeBillingByOldPath',
    path: '/billing/networkvolumes',
    summary: 'What network volumes cost, by volume (the same, as some clients write it)',
  },
  resourceHistory('ClusterBilling', {
    path: '/billing/clusters',
    summary: 'What clusters used and cost, by cluster',
    kind: 'cluster',
    idField: 'clusterId',
    countField: 'uniqueClusterCount',
  }),
];

export function billingOperations({ billing }: ResourceServices): Operation[] {
  return [
    operation({
      ...shared,
      id: 'listBilling',
      path: '/billing',
      summary: 'What was used and cost, all kinds together',
      description: 'A bucket in which nothing was used has no record.',
      query: windowQuery,
      response: billingResponse('Billing', amountFields.summary),
      handle: async ({ caller, query }) => {
        const { window, byKind } = await billing.summary(caller, readWindow(query));
        const starts = new Map(
          Object.entries(byKind).flatMap(([kind, tallies]) =>
            tallies.map((tally): [string, { kind: UsageKind; tally: UsageTotal }] => [
              `${tally.start} ${kind}`,
              { kind: kind as UsageKind, tally },
            ]),
          ),
        );
        const buckets = window.buckets.filter(({ start }) =>
          KINDS.some((kind) => starts.has(`${start} ${kind}`)),
        );
        const inBucket = (start: number, kind: UsageKind): UsageTotal[] => {
          const found = starts.get(`${start} ${kind}`);
          return found === undefined ? [] : [found.tally];
        };
        const records = buckets.map(({ start, end }) => ({
          ...bucketTimes(start, end),
          ...summaryAmounts((kind) => inBucket(start, kind)),
        }));
        return {
          records,
          metadata: {
            query: echo(window),
            recordCount: records.length,
            totals: summaryAmounts((kind) => byKind[kind]),
          },
        };
      },
    }),
    operation({
      ...shared,
      id: 'listEndpointBilling',
      path: '/billing/endpoints',
      summary: 'Public endpoints: there are none here, so nothing was used',
      query: windowQuery,
      response: billingResponse('EndpointBilling', amountFields.endpoint),
      handle: async ({ query }) => ({
        records: [],
        metadata: {
          query: echo(billing.window(readWindow(query))),
          recordCount: 0,
          totals: { totalAmount: 0 },
        },
      }),
    }),
    ...HISTORIES.map(({ kind, idField, countField, ...definition }) =>
      operation({
        ...shared,
        ...definition,
        description: 'One record for each bucket in which it was used.',
        query: object(
          {},
          { ...windowFields, [idField]: text({ minLength: 1, description: 'Of this one alone' }) },
        ) as Schema<Static<typeof windowQuery> & Record<string, string | undefined>>,
        handle: async ({ caller, query }) => {
          const only = query[idField];
          const { window, totals } = await billing.history(caller, kind, {
            ...readWindow(query),
            grouping: 'resource',
            ...(only !== undefined && { filter: { resourceId: only } }),
          });
          const records = totals.map((tally) => ({
            ...bucketTimes(tally.start, tally.end),
            [idField]: tally.group,
            ...AMOUNTS[kind]([tally]),
          }));
          const metadata = {
            query: { ...echo(window), [idField]: only ?? null },
            recordCount: records.length,
            [countField]: new Set(totals.map(({ group }) => group)).size,
            totals: AMOUNTS[kind](totals),
          };
          return { records, metadata };
        },
      }),
    ),
  ];
}

const KINDS = Object.keys(AMOUNTS) as UsageKind[];

function summaryAmounts(of: (kind: UsageKind) => readonly UsageTotal[]): Amounts {
  const [pods, serverless, storage, clusters] = [
    AMOUNTS.pod(of('pod')),
    AMOUNTS.serverless(of('serverless')),
    AMOUNTS.volume(of('volume')),
    AMOUNTS.cluster(of('cluster')),
  ];
  const named = (prefix: string, { totalAmount: _, ...amounts }: Amounts): Amounts =>
    Object.fromEntries(
      Object.entries(amounts).map(([name, amount]) => [
        prefix + name[0]?.toUpperCase() + name.slice(1),
        amount,
      ]),
    );
  return {
    totalAmount: dollars(totalAmount(KINDS.flatMap((kind) => of(kind)))),
    ...named('pod', pods),
    ...named('serverless', serverless),
    ...named('storage', storage),
    endpointAmount: 0,
    ...named('cluster', clusters),
  };
}

function echo({ start, end, bucketSize }: BillingWindow): Record<string, string> {
  return { ...bucketTimes(start, end), bucketSize };
}
