/** Jobs per queue and number of queues in the sample: at most 20,000 rows. */
export const SAMPLED_JOBS = 200;
export const SAMPLED_QUEUES = 100;

export interface SampledQueueRow {
  queued: number;
  /** Bytes of the requests in the sample. */
  average: number;
}

/** The estimate for all queues, extrapolated from the sample. */
export function estimatedBytes(sampled: readonly SampledQueueRow[], allJobs: number): number {
  let [jobs, bytes] = [0, 0];
  for (const { queued, average } of sampled) {
    jobs += Number(queued);
    bytes += Number(queued) * Number(average);
  }
  return jobs === 0 ? 0 : Math.round((bytes / jobs) * Math.max(jobs, allJobs));
}
