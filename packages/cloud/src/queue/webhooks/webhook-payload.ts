import type { Job, Payloads } from '../../domain/job-records.ts';
import { delayTime, executionTime } from '../../domain/job-status.ts';
import { memberText } from '../../support/json-text.ts';

/**
 * The body of a webhook: the job as `/status` shows it at its end, and its input. Payloads are inserted as
 * their original text.
 */
export function webhookBody(job: Job, { request, output, error }: Payloads): string {
  const members = [
    `"id":${JSON.stringify(job.id)}`,
    `"status":"${job.status}"`,
    `"delayTime":${delayTime(job) ?? 0}`,
    `"executionTime":${executionTime(job) ?? 0}`,
    `"workerId":${JSON.stringify(job.workerId ?? '')}`,
  ];
  if (job.retries > 0) members.push(`"retries":${job.retries}`);
  if (output !== null) members.push(`"output":${output}`);
  if (error !== null) members.push(`"error":${error}`);
  members.push(
    `"input":${memberText(request, 'input') ?? 'null'}`,
    `"webhook":${JSON.stringify(job.webhook)}`,
  );
  return `{${members.join(',')}}`;
}
