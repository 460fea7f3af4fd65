import { total } from '../../metering/billing.ts';
import { BUCKET_SIZES } from '../../metering/buckets.ts';
import { dollars } from '../../metering/money.ts';
import type { Tally } from '../../metering/tally.ts';
import type { Resources } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/operation.ts';
import { operation } from '../rest/operation.ts';
import { commaList, integer, list, named, number, object, oneOf, text } from '../rest/schema.ts';
import type { Static } from '../rest/schema.ts';

const MOST_NAMED = 100;
const instant = (description: string) => text({ format: 'date-time', description });
const amount = number({ description: 'US dollars' });
const diskSpaceBilledGb = integer({
  description: 'Disk that was held when the period began, and what was added in it',
});
const time = instant('The start of the period');

const window = {
  startTime: instant('Thirty days before the end if not said; widened to whole periods'),
  endTime: instant('Now if not said'),
  bucketSize: oneOf(BUCKET_SIZES, { default: 'day', description: 'How long each period is, in UTC' }),
};

const record = named(
  'BillingRecord',
  object(
    { amount, time, timeBilledMs: integer({ description: 'How long it ran' }), diskSpaceBilledGb },
    {
      podId: text({ description: 'Where records are by pod' }),
      endpointId: text({ description: 'Where records are by endpoint' }),
      gpuTypeId: text({ description: 'Where records are by GPU type; left out for what has no GPU' }),
    },
  ),
);
const volumeRecord = named(
  'NetworkVolumeBillingRecord',
  object({
    amount,
    time,
    diskSpaceBilledGb,
    highPerformanceStorageAmount: number({
      description: 'What of the amount is for the high-performance tier',
    }),
    highPerformanceStorageDiskSpaceBilledGb: integer({ description: 'What of the disk is of that tier' }),
  }),
);
const among = (description: string) => commaList(text(), { maxItems: MOST_NAMED, description });

const GROUPINGS = { podId: 'resource', gpuTypeId: 'gpuType' } as const;
const ENDPOINT_GROUPINGS = { endpointId: 'resource', podId: 'unit', gpuTypeId: 'gpuType' } as const;

export function billingOperations({ billing }: Resources): Operation[] {
  const shared = {
    method: 'GET' as const,
    tag: 'Billing',
    access: 'read' as const,
    status: 200 as const,
    failures: [400],
  };
  return [
    operation({
      ...shared,
      id: 'podBilling',
      path: '/billing/pods',
      summary: 'What pods used and cost',
      query: object(
        {},
        {
          ...window,
          grouping: oneOf(['podId', 'gpuTypeId'], { default: 'gpuTypeId' }),
          podId: text({ description: 'Of this pod alone' }),
          gpuTypeId: text({ description: 'Of pods with this GPU type alone' }),
        },
      ),
      answer: list(record),
      handle: async ({
        caller,
        query: { grouping = 'gpuTypeId', podId, gpuTypeId, bucketSize = 'day', ...rest },
      }) => {
        const filter = {
          ...(podId !== undefined && { resourceId: podId }),
          ...(gpuTypeId !== undefined && { gpuTypeIds: [gpuTypeId] }),
        };
        const { tallies } = await billing.history(caller, 'pod', {
          ...rest,
          bucketSize,
          grouping: GROUPINGS[grouping],
          filter,
        });
        return tallies.map((tally) => show(tally, grouping));
      },
    }),
    operation({
      ...shared,
      id: 'endpointBilling',
      path: '/billing/endpoints',
      summary: 'What serverless endpoints used and cost',
      query: object(
        {},
        {
          ...window,
          grouping: oneOf(['endpointId', 'podId', 'gpuTypeId'], {
            default: 'endpointId',
            description: 'A worker is a pod here',
          }),
          endpointId: text({ description: 'Of this endpoint alone' }),
          dataCenterId: among('Of workers in these data centers alone'),
          gpuTypeId: among('Of workers with these GPU types alone'),
          imageName: text({ description: 'Of workers of this image alone' }),
          templateId: text({ description: 'Of endpoints that were made from this template alone' }),
        },
      ),
      answer: list(record),
      handle: async ({
        caller,
        query: {
          grouping = 'endpointId',
          endpointId,
          dataCenterId,
          gpuTypeId,
          imageName,
          templateId,
          bucketSize = 'day',
          ...rest
        },
      }) => {
        const filter = {
          ...(endpointId !== undefined && { resourceId: endpointId }),
          ...(dataCenterId !== undefined && { dataCenterIds: dataCenterId }),
          ...(gpuTypeId !== undefined && { gpuTypeIds: gpuTypeId }),
          ...(imageName !== undefined && { image: imageName }),
          ...(templateId !== undefined && { templateId }),
        };
        const { tallies } = await billing.history(caller, 'serverless', {
          ...rest,
          bucketSize,
          grouping: ENDPOINT_GROUPINGS[grouping],
          filter,
        });
        return tallies.map((tally) => show(tally, grouping));
      },
    }),
    operation({
      ...shared,
      id: 'networkVolumeBilling',
      path: '/billing/networkvolumes',
      summary: 'What network volumes cost',
      query: object({}, window),
      answer: list(volumeRecord),
      handle: async ({ caller, query: { bucketSize = 'day', ...rest } }) => {
        const { tallies } = await billing.history(caller, 'volume', {
          ...rest,
          bucketSize,
          grouping: 'hardware',
        });
        return [...Map.groupBy(tallies, ({ start }) => start).values()].map(showVolumes);
      },
    }),
  ];
}

function show(tally: Tally, grouping: 'podId' | 'endpointId' | 'gpuTypeId'): Static<typeof record> {
  return {
    amount: dollars(total([tally])),
    diskSpaceBilledGb: tally.diskInGb,
    time: isoTime(tally.start * 1000),
    timeBilledMs: tally.seconds * 1000,
    ...(tally.group !== '' && { [grouping]: tally.group }),
  };
}

/** The tiers of one period in one record. */
function showVolumes(tiers: readonly Tally[]): Static<typeof volumeRecord> {
  const fast = tiers.filter(({ group }) => group === 'HIGH_PERFORMANCE');
  return {
    amount: dollars(total(tiers)),
    diskSpaceBilledGb: gigabytes(tiers),
    highPerformanceStorageAmount: dollars(total(fast)),
    highPerformanceStorageDiskSpaceBilledGb: gigabytes(fast),
    time: isoTime((tiers[0]?.start ?? 0) * 1000),
  };
}

function gigabytes(tallies: readonly Tally[]): number {
  return tallies.reduce((sum, { diskInGb }) => sum + diskInGb, 0);
}
