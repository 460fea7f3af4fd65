import { seededNumbers } from '../../../../testing/src/property-testing.ts';
import { newJob } from '../../queue/job-submission.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { JobWithPayloads, TakenJob } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { queueSettings } from '../queue-settings.fixture.ts';

export const NOW = 1_800_000_000_000;

const next = seededNumbers();
export function random(below: number): number {
  return Math.floor(next() * below);
}

let number = 0;
let leases = 0;

/** A position of the queue that no job has. */
export const newPosition = (): number => ++number;

export const newLeases = (count: number): string[] =>
  Array.from({ length: count }, () => `lease ${++leases}`);

export function made(
  endpointId: string,
  terms: JobOptions = {},
  accountId = 'one',
  request = `{"input": {"n": ${number}}}`,
): JobWithPayloads {
  return newJob(queueSettings(endpointId), accountId, request, terms, ++number, NOW);
}

export function submitAll(store: JobStore, jobs: readonly JobWithPayloads[]): Promise<unknown> {
  return Promise.all(jobs.map((job) => store.submit(job)));
}

export function take(
  store: JobStore,
  endpointId: string,
  wanted: number,
  names: readonly string[] = newLeases(wanted),
): Promise<TakenJob[]> {
  return store.take(
    endpointId,
    transitions.takeRequest(() => names.map((lease) => ({ workerId: 'w', lease })), NOW + 5),
  );
}

export function numbersOf(taken: readonly TakenJob[]): number[] {
  return taken.map(({ job }) => job.seq);
}
