import { totalAmount } from '../../metering/billing.ts';
import { BUCKET_SIZES } from '../../domain/time-buckets.ts';
import { dollars } from '../../domain/money.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { commaList, integer, list, named, number, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import type { UsageTotal } from '../../domain/usage-records.ts';

const MAX_FILTER_VALUES = 100;
const dateTime = (description: string) => text({ format: 'date-time', description });
const amount = number({ description: 'US dollars' });
const diskSpaceBilledGb = integer({
  description: 'Disk that was held when the period began, and what was added in it',
});
const time = dateTime('The start of the period');

const window = {
  startTime: dateTime('Default: thirty days before the end. Widened to whole periods'),
  endTime: dateTime('Default: now'),
  bucketSize: stringEnum(BUCKET_SIZES, { default: 'day', description: 'How long each period is, in UTC' }),
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
const filterList = (description: string) => commaList(text(), { maxItems: MAX_FILTER_VALUES, description });

const GROUPINGS = { podId: 'resource', gpuTypeId: 'gpuType' } as const;
const ENDPOINT_GROUPINGS = { endpointId: 'resource', podId: 'unit', gpuTypeId: 'gpuType' } as const;

export function billingOperations({ billing }: ResourceServices): Operation[] {
  const shared = {
    method: 'GET' as const,
    tag: 'Billing',
    access: 'read' as const,
    status: 200 as const,
    errorStatuses: [400],
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
          grouping: stringEnum(['podId', 'gpuTypeId'], { default: 'gpuTypeId' }),
          podId: text({ description: 'Of this pod alone' }),
          gpuTypeId: text({ description: 'Of pods with this GPU type alone' }),
        },
      ),
      response: list(record),
      handle: async ({
        caller,
        query: { grouping = 'gpuTypeId', podId, gpuTypeId, bucketSize = 'day', ...rest },
      }) => {
        const filter = {
          ...(podId !== undefined && { resourceId: podId }),
          ...(gpuTypeId !== undefined && { gpuTypeIds: [gpuTypeId] }),
        };
        const { totals } = await billing.history(caller, 'pod', {
          ...rest,
          bucketSize,
          grouping: GROUPINGS[grouping],
          filter,
        });
        return totals.map((tally) => serializeRecord(tally, grouping));
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
          grouping: stringEnum(['endpointId', 'podId', 'gpuTypeId'], {
            default: 'endpointId',
            description: 'A worker is a pod here',
          }),
          endpointId: text({ description: 'Of this endpoint alone' }),
          dataCenterId: filterList('Of workers in these data centers alone'),
          gpuTypeId: filterList('Of workers with these GPU types alone'),
          imageName: text({ description: 'Of workers of this image alone' }),
          templateId: text({ description: 'Of endpoints that were made from this template alone' }),
        },
      ),
      response: list(record),
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
        const { totals } = await billing.history(caller, 'serverless', {
          ...rest,
          bucketSize,
          grouping: ENDPOINT_GROUPINGS[grouping],
          filter,
        });
        return totals.map((tally) => serializeRecord(tally, grouping));
      },
    }),
    operation({
      ...shared,
      id: 'networkVolumeBilling',
      path: '/billing/networkvolumes',
      summary: 'What network volumes cost',
      query: object({}, window),
      response: list(volumeRecord),
      handle: async ({ caller, query: { bucketSize = 'day', ...rest } }) => {
        const { totals } = await billing.history(caller, 'volume', {
          ...rest,
          bucketSize,
          grouping: 'hardware',
        });
        return [...Map.groupBy(totals, ({ start }) => start).values()].map(serializeVolumeRecord);
      },
    }),
  ];
}

function serializeRecord(
  tally: UsageTotal,
  grouping: 'podId' | 'endpointId' | 'gpuTypeId',
): Static<typeof record> {
  return {
    amount: dollars(totalAmount([tally])),
    diskSpaceBilledGb: tally.diskInGb,
    time: isoTime(tally.start * 1000),
    timeBilledMs: tally.seconds * 1000,
    ...(tally.group !== '' && { [grouping]: tally.group }),
  };
}

/** The tiers of one period in one record. */
function serializeVolumeRecord(tiers: readonly UsageTotal[]): Static<typeof volumeRecord> {
  const fast = tiers.filter(({ group }) => group === 'HIGH_PERFORMANCE');
  return {
    amount: dollars(totalAmount(tiers)),
    diskSpaceBilledGb: gigabytes(tiers),
    highPerformanceStorageAmount: dollars(totalAmount(fast)),
    highPerformanceStorageDiskSpaceBilledGb: gigabytes(fast),
    time: isoTime((tiers[0]?.start ?? 0) * 1000),
  };
}

function gigabytes(tallies: readonly UsageTotal[]): number {
  return tallies.reduce((sum, { diskInGb }) => sum + diskInGb, 0);
}
