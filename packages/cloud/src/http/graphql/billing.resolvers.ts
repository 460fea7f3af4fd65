import { partAmount, totalAmount } from '../../metering/billing.ts';
import type { BucketSize } from '../../domain/time-buckets.ts';
import { dollars } from '../../domain/money.ts';
import type { Caller } from '../../domain/caller.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { GraphqlModule } from './graphql-module.ts';
import type { UsageTotal } from '../../domain/usage-records.ts';

const sdl = `
  extend type User {
    "US dollars for an hour like this moment"
    currentSpendPerHr: Float
    "US dollars for all that was ever used"
    clientLifetimeSpend: Float
    spendDetails: SpendDetails
    billing(input: UserBillingInput): UserBilling
  }
  "US dollars for an hour like this moment"
  type SpendDetails { localStoragePerHour: Float networkStoragePerHour: Float gpuComputePerHour: Float }
  enum BillingGranularity { HOURLY DAILY WEEKLY MONTHLY }
  input UserBillingInput { granularity: BillingGranularity }
  "The last week by hours, the last month by days, or the last year by weeks or months"
  type UserBilling {
    "Pods with a GPU, without their disks"
    gpuCloud: [GpuCloudBilling]
    "Pods without a GPU, without their disks"
    cpuCloud: [CpuCloudBilling]
    serverless: [ServerlessBilling]
    "Disks of pods, and network volumes"
    storage: [StorageBilling]
    "Public endpoints: there are none here"
    runpodEndpoint: [EndpointBilling]
    summary: [SummaryBilling]
  }
  type GpuCloudBilling { gpuTypeId: String time: DateTime timeBilledSeconds: Int amount: Float }
  type CpuCloudBilling { cpuFlavorId: String time: DateTime timeBilledSeconds: Int amount: Float }
  type ServerlessBilling {
    endpointId: String gpuTypeId: String instanceId: String time: DateTime timeBilledSeconds: Int
    amount: Float
  }
  type StorageBilling { time: DateTime amount: Float diskSpaceBilledGB: Int }
  type EndpointBilling { time: DateTime amount: Float }
  type SummaryBilling {
    time: DateTime gpuCloudAmount: Float cpuCloudAmount: Float serverlessAmount: Float
    storageAmount: Float runpodEndpointAmount: Float
  }
`;

type Granularity = 'HOURLY' | 'DAILY' | 'WEEKLY' | 'MONTHLY';
const WINDOWS: Record<Granularity, { bucketSize: BucketSize; lastN: number }> = {
  HOURLY: { bucketSize: 'hour', lastN: 7 * 24 },
  DAILY: { bucketSize: 'day', lastN: 30 },
  WEEKLY: { bucketSize: 'week', lastN: 52 },
  MONTHLY: { bucketSize: 'month', lastN: 12 },
};

export function billingModule({ billing }: ResourceServices): GraphqlModule {
  const history = async (caller: Caller, granularity: Granularity) => {
    const window = WINDOWS[granularity];
    const [pods, clusters, serverless, summary] = await Promise.all([
      billing.history(caller, 'pod', { ...window, grouping: 'hardware' }),
      billing.history(caller, 'cluster', { ...window, grouping: 'hardware' }),
      billing.history(caller, 'serverless', { ...window, grouping: 'resource' }),
      billing.summary(caller, window),
    ]);
    const machines = [...pods.totals, ...clusters.totals];
    const { pod, cluster, volume } = summary.byKind;
    const disks = [...pod, ...cluster, ...volume];
    return {
      gpuCloud: machines
        .filter(({ group }) => group.startsWith('gpu '))
        .map((tally) => ({ ...timed(tally), gpuTypeId: nameOf(tally), amount: dollars(tally.amounts.gpu) })),
      cpuCloud: machines
        .filter(({ group }) => group.startsWith('cpu '))
        .map((tally) => ({
          ...timed(tally),
          cpuFlavorId: nameOf(tally),
          amount: dollars(tally.amounts.cpu),
        })),
      serverless: serverless.totals.map((tally) => ({
        ...timed(tally),
        endpointId: tally.group,
        amount: dollars(totalAmount([tally])),
      })),
      storage: startsOf(disks)
        .map((start) => ({
          time: isoTime(start * 1000),
          amount: storageOf(at(start, disks)),
          diskSpaceBilledGB: shownInt(at(start, disks).reduce((sum, { diskInGb }) => sum + diskInGb, 0)),
        }))
        .filter(({ diskSpaceBilledGB }) => diskSpaceBilledGB > 0),
      runpodEndpoint: [],
      summary: startsOf(Object.values(summary.byKind).flat()).map((start) => ({
        time: isoTime(start * 1000),
        gpuCloudAmount: dollars(partAmount(at(start, [...pod, ...cluster]), 'gpu')),
        cpuCloudAmount: dollars(partAmount(at(start, [...pod, ...cluster]), 'cpu')),
        serverlessAmount: dollars(totalAmount(at(start, summary.byKind.serverless))),
        storageAmount: storageOf(at(start, disks)),
        runpodEndpointAmount: 0,
      })),
    };
  };
  return {
    sdl,
    authenticatedResolvers: {
      User: {
        currentSpendPerHr: async (_args: unknown, caller) => (await billing.currentSpend(caller)).total,
        clientLifetimeSpend: async (_args: unknown, caller) => dollars(await billing.lifetime(caller)),
        spendDetails: async (_args: unknown, caller) => {
          const { localStorage, networkStorage, compute } = await billing.currentSpend(caller);
          return {
            localStoragePerHour: localStorage,
            networkStoragePerHour: networkStorage,
            gpuComputePerHour: compute,
          };
        },
        billing: ({ input }: { input?: { granularity?: Granularity } }, caller) =>
          history(caller, input?.granularity ?? 'DAILY'),
      },
    },
  };
}

function timed({ start, seconds }: UsageTotal): { time: string; timeBilledSeconds: number } {
  return { time: isoTime(start * 1000), timeBilledSeconds: shownInt(seconds) };
}

/** Hardware is written with its kind before its name. */
function nameOf({ group }: UsageTotal): string {
  return group.slice('gpu '.length);
}

function storageOf(tallies: readonly UsageTotal[]): number {
  return dollars(partAmount(tallies, 'disk') + partAmount(tallies, 'fastDisk'));
}

function startsOf(tallies: readonly UsageTotal[]): number[] {
  return [...new Set(tallies.map(({ start }) => start))].sort((one, other) => one - other);
}

function at(wanted: number, tallies: readonly UsageTotal[]): UsageTotal[] {
  return tallies.filter(({ start }) => start === wanted);
}

/** GraphQL's whole numbers have 32 bits: a thousand pods use them up within a month. */
function shownInt(value: number): number {
  return Math.min(value, 2 ** 31 - 1);
}
