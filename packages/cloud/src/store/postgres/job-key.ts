/**
 * On PostgreSQL a job is named by its endpoint and number: two servers may count to the same number on two
 * endpoints.
 */
export const JOB_KEY_COLUMNS = ['endpoint_id', 'seq'] as const;

export function jobKey(endpointId: string, seq: number): string {
  return `${endpointId} ${seq}`;
}
