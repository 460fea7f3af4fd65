import type { Delivery, DeliveryEntry, JobChange, Payloads } from '../../domain/job-records.ts';
import type { Row, Value } from '../sql.ts';

export const DELIVERY_COLUMNS = [
  'id',
  'endpoint_id',
  'account_id',
  'job_id',
  'url',
  'body',
  'attempts',
  'next_at',
  'state',
  'last_status',
  'last_error',
  'created_at',
  'updated_at',
] as const;

/** The columns of a delivery by name, which are also the names of the parameters. */
export function deliveryValues(delivery: Delivery): Record<(typeof DELIVERY_COLUMNS)[number], Value> {
  return {
    id: delivery.id,
    endpoint_id: delivery.endpointId,
    account_id: delivery.accountId,
    job_id: delivery.jobId,
    url: delivery.url,
    body: delivery.body,
    attempts: delivery.attempts,
    next_at: delivery.nextAt,
    state: delivery.state,
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    created_at: delivery.createdAt,
    updated_at: delivery.updatedAt,
  };
}

/** All but the body, which may be large. */
export const DELIVERY_ENTRY_COLUMNS = DELIVERY_COLUMNS.filter((column) => column !== 'body').join(', ');

/**
 * The first deliveries, up to a total size but at least one. Both databases know sizes without reading the
 * bodies.
 */
export function idsWithinBytes(rows: readonly Row[], bytes: number): string[] {
  let size = 0;
  return rows
    .filter((row, index) => (size += row['bytes'] as number) <= bytes || index === 0)
    .map((row) => row['id'] as string);
}

export function deliveryFromRow(row: Row): Delivery {
  return { ...deliveryEntryFromRow(row), body: row['body'] as string };
}

export function deliveryEntryFromRow(row: Row): DeliveryEntry {
  return {
    id: row['id'] as string,
    endpointId: row['endpoint_id'] as string,
    accountId: row['account_id'] as string,
    jobId: row['job_id'] as string,
    url: row['url'] as string,
    attempts: row['attempts'] as number,
    nextAt: row['next_at'] as number | null,
    state: row['state'] as Delivery['state'],
    lastStatus: row['last_status'] as number | null,
    lastError: row['last_error'] as string | null,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
  };
}

/** A job's payloads after a change: what the change brings, else what is stored. */
export function mergedPayloads(
  stored: Payloads,
  { output, error }: Pick<JobChange, 'output' | 'error'>,
): Payloads {
  return {
    request: stored.request,
    output: output === undefined ? stored.output : output,
    error: error === undefined ? stored.error : error,
  };
}
