import type { EndpointQueueSettings } from '../queue/job-submission.ts';

export const NOW = 1_800_000_000_000;

/** The settings of a queue endpoint that tests submit jobs to. */
export const queueSettings = (id = 'e', accountId = 'one'): EndpointQueueSettings => ({
  id,
  accountId,
  executionTimeout: 600_000,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
});
