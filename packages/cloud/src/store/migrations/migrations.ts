import { accountsAndResources } from './0001-accounts-and-resources.ts';
import { endpoints } from './0002-endpoints.ts';
import { jobs } from './0003-jobs.ts';
import { workersAndReleases } from './0004-workers-and-releases.ts';
import { jobLeases } from './0005-job-leases.ts';
import { pods } from './0006-pods.ts';
import { usage } from './0007-usage.ts';
import { clusters } from './0008-clusters.ts';
import { s3Keys } from './0009-s3-keys.ts';
import { flashAndModels } from './0010-flash-and-models.ts';
import { chunkNumbers } from './0011-chunk-numbers.ts';
import { packedDays } from './0012-packed-days.ts';
import { inlineJobs } from './0013-inline-jobs.ts';
import { endedDeliveries } from './0014-ended-deliveries.ts';
import { queueAndLeaseBatches } from './0015-queue-and-lease-batches.ts';
import { inlineJobResults } from './0016-inline-job-results.ts';
import { waitingJobBatches } from './0017-waiting-job-batches.ts';
import { jobStateInOneRow } from './0018-job-state-in-one-row.ts';
import { acceleration } from './0019-acceleration.ts';
import { jobStateInOneRowOnPostgres } from './0020-job-state-in-one-row-on-postgres.ts';
import { startPhases } from './0021-start-phases.ts';
import { accountLimits } from './0022-account-limits.ts';
import { failedJobs } from './0023-failed-jobs.ts';
import { sessions } from './0024-sessions.ts';
import { severalServers } from './0025-several-servers.ts';
import { history } from './0026-history.ts';
import { sharedImages } from './0027-shared-images.ts';
import { clustersWithoutSubnet } from './0028-clusters-without-subnet.ts';
import { sharedFiles } from './0029-shared-files.ts';
import { workerShards } from './0030-worker-shards.ts';
import { queueColumnNames } from './0031-queue-column-names.ts';
import type { Migration } from './migration.ts';

export const migrations: Migration[] = [
  accountsAndResources,
  endpoints,
  jobs,
  workersAndReleases,
  jobLeases,
  pods,
  usage,
  clusters,
  s3Keys,
  flashAndModels,
  chunkNumbers,
  packedDays,
  inlineJobs,
  endedDeliveries,
  queueAndLeaseBatches,
  inlineJobResults,
  waitingJobBatches,
  jobStateInOneRow,
  acceleration,
  jobStateInOneRowOnPostgres,
  startPhases,
  accountLimits,
  failedJobs,
  sessions,
  severalServers,
  history,
  sharedImages,
  clustersWithoutSubnet,
  sharedFiles,
  workerShards,
  queueColumnNames,
];
