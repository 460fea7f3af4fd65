import { delayTime, executionTime, hasEnded } from '../../domain/job-status.ts';
import { startPhasesJson, type StartPhases } from '../../domain/endpoints/start-phases.ts';
import { memberText } from '../../support/json-text.ts';
import type { Job, JobOutcome, JobWithPayloads } from '../../domain/job-records.ts';

/** A job as `/status` and its neighbours show it. Payloads are spliced in as the text that they are. */
export function jobStatusJson({ job, payloads }: JobOutcome, reason?: string, phases?: StartPhases): string {
  let text = statusStart(job);
  if (payloads.output !== null) text += `,"output":${payloads.output}`;
  return text + statusEnd({ job, payloads }, reason, phases);
}

/** The same around an output that is sent as it is stored: what comes before it, and what after. */
export function splitAtOutput(
  { job, payloads }: JobOutcome,
  phases?: StartPhases,
): [before: string, after: string] {
  return [`${statusStart(job)},"output":`, statusEnd({ job, payloads }, undefined, phases)];
}

function statusStart(job: Job): string {
  let text = `{"id":"${job.id}","status":"${job.status}"`;
  const delay = delayTime(job);
  if (delay !== undefined || hasEnded(job)) text += `,"delayTime":${delay ?? 0}`;
  const execution = executionTime(job);
  if (execution !== undefined) text += `,"executionTime":${execution}`;
  if (job.workerId !== null || hasEnded(job)) text += `,"workerId":${JSON.stringify(job.workerId ?? '')}`;
  if (job.retries > 0) text += `,"retries":${job.retries}`;
  return text;
}

function statusEnd({ job, payloads }: JobOutcome, reason?: string, phases?: StartPhases): string {
  let text = '';
  if (payloads.error !== null) text += `,"error":${payloads.error}`;
  if (!hasEnded(job)) text += `,"input":${memberText(payloads.request ?? '{}', 'input') ?? 'null'}`;
  if (reason !== undefined) text += `,"reason":${JSON.stringify(reason)}`;
  if (phases !== undefined) text += `,"phases":${JSON.stringify(startPhasesJson(phases))}`;
  return `${text}}`;
}

/** An answer that names the job and its state alone. */
export function jobSummaryJson({ id, status }: Pick<Job, 'id' | 'status'>): string {
  return `{"id":"${id}","status":"${status}"}`;
}

/**
 * A job in the list of requests: with its input, and what came of it. Credentials for uploads stay hidden.
 */
export function jobRequestJson({ job, payloads }: JobWithPayloads): string {
  let text = `{"id":"${job.id}","status":"${job.status}","createdAt":"${new Date(job.createdAt).toISOString()}"`;
  const delay = delayTime(job);
  if (delay !== undefined) text += `,"delayTime":${delay}`;
  const execution = executionTime(job);
  if (execution !== undefined) text += `,"executionTime":${execution}`;
  if (job.workerId !== null) text += `,"workerId":${JSON.stringify(job.workerId)}`;
  text += `,"retries":${job.retries},"input":${memberText(payloads.request, 'input') ?? 'null'}`;
  if (payloads.output !== null) text += `,"output":${payloads.output}`;
  if (payloads.error !== null) text += `,"error":${payloads.error}`;
  return `${text}}`;
}
