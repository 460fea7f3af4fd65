import { BUCKET_SIZES } from '../../domain/time-buckets.ts';
import { integer, list, named, nullable, number, object, stringEnum, text } from '../rest/json-schema.ts';
import type { WindowQuery } from '../../domain/billing-window.ts';
import { isoTime } from '../../support/clock.ts';
import type { Fields, Schema, Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';

const usd = (what: string) => number({ description: `US dollars for ${what}` });
const none = (why: string) => number({ description: `Always 0: ${why}` });
const totalAmount = usd('all of it');

export const windowFields = {
  startTime: dateTime('Default: thirty days before the end. Moved back to the start of its bucket'),
  endTime: dateTime('Exclusive. Default: now. Moved on to the end of its bucket'),
  bucketSize: stringEnum(BUCKET_SIZES, {
    default: 'day',
    description: 'How long each bucket is, in UTC; a week begins on Monday',
  }),
  lastN: integer({
    minimum: 1,
    description: 'So many buckets, the present one included, in place of startTime and endTime',
  }),
};

const windowValues = object({}, windowFields);

/** Default: days. */
export function readWindow({
  startTime,
  endTime,
  bucketSize = 'day',
  lastN,
}: Static<typeof windowValues>): WindowQuery {
  return {
    bucketSize,
    ...(startTime !== undefined && { startTime }),
    ...(endTime !== undefined && { endTime }),
    ...(lastN !== undefined && { lastN }),
  };
}

/** From seconds since 1970. */
export function bucketTimes(start: number, end: number): { startTime: string; endTime: string } {
  return { startTime: isoTime(start * 1000), endTime: isoTime(end * 1000) };
}

export const amountFields = {
  pod: {
    totalAmount,
    gpuAmount: usd('pods with a GPU'),
    cpuAmount: usd('pods without one'),
    diskAmount: usd('disks of pods'),
  },
  serverless: {
    totalAmount,
    gpuAmount: usd('workers with a GPU'),
    cpuAmount: usd('workers without one'),
    diskAmount: usd('disks of workers'),
    feeAmount: none('there is no fee here'),
  },
  volume: {
    totalAmount,
    standardAmount: usd('the standard tier'),
    highPerformanceAmount: usd('the high-performance tier'),
  },
  cluster: {
    totalAmount,
    gpuAmount: usd('the pods of clusters'),
    diskAmount: usd('their disks'),
    networkingAmount: none('the network between the pods is not charged here'),
  },
  endpoint: { totalAmount: none('there are no public endpoints here') },
  summary: {
    totalAmount,
    podGpuAmount: usd('pods with a GPU'),
    podCpuAmount: usd('pods without one'),
    podDiskAmount: usd('disks of pods'),
    serverlessGpuAmount: usd('workers with a GPU'),
    serverlessCpuAmount: usd('workers without one'),
    serverlessDiskAmount: usd('disks of workers'),
    serverlessFeeAmount: none('there is no fee here'),
    storageStandardAmount: usd('network volumes'),
    storageHighPerformanceAmount: usd('network volumes of the high-performance tier'),
    endpointAmount: none('there are no public endpoints here'),
    clusterGpuAmount: usd('the pods of clusters'),
    clusterDiskAmount: usd('their disks'),
    clusterNetworkingAmount: none('the network between the pods is not charged here'),
  },
};

/** One amount for each field. */
export type Amounts = Record<string, number>;

export interface BillingResponse {
  records: Record<string, string | number>[];
  metadata: { query: Record<string, string | null>; recordCount: number; totals: Amounts } & Record<
    string,
    unknown
  >;
}

/**
 * Records with their time and amounts, and what they are about; `idField` names the resource where records
 * are by resource.
 */
export function billingResponse(
  name: string,
  amounts: Fields,
  resource?: { idField: string; countField: string },
): Schema<BillingResponse> {
  const range = { startTime: dateTime('Inclusive'), endTime: dateTime('Exclusive') };
  const id = resource === undefined ? {} : { [resource.idField]: text() };
  const query = object(
    { ...range, bucketSize: stringEnum(BUCKET_SIZES) },
    resource === undefined
      ? {}
      : { [resource.idField]: nullable(text({ description: 'The requested resource' })) },
    { description: 'The request, as it was interpreted' },
  );
  const response = object({
    records: list(named(`${name}Record`, object({ ...range, ...id, ...amounts }))),
    metadata: object({
      query,
      recordCount: integer(),
      ...(resource !== undefined && {
        [resource.countField]: integer({ description: 'How many of them the records are about' }),
      }),
      totals: object(amounts),
    }),
  });
  return named(`${name}List`, response) as Schema as Schema<BillingResponse>;
}
