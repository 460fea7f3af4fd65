/** So many jobs of each queue, and so many queues, are looked at: at most 20,000 rows. */
export const SAMPLED_JOBS = 200;
export const SAMPLED_QUEUES = 100;

export interface SampledQueueRow {
  queued: number;
  /** Bytes of a request, of the jobs that were looked at. */
  average: number;
}

/** What all queues hold, if the jobs that were not looked at are like the others. */
export function estimatedBytes(sampled: readonly SampledQueueRow[], allJobs: number): number {
  let [jobs, bytes] = [0, 0];
  for (const { queued, average } of sampled) {
    jobs += Number(queued);
    bytes += Number(queued) * Number(average);
  }
  return jobs === 0 ? 0 : Math.round((bytes / jobs) * Math.max(jobs, allJobs));
}
