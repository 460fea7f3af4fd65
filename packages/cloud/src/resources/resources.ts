import type { Billing } from '../metering/billing.ts';
import type { History } from '../telemetry/history/history.ts';
import type { AccountEvents } from '../telemetry/events/account-events.ts';
import type { BackupSchedule } from './backups/backup-schedule.ts';
import type { Backups } from './backups/backups.ts';
import type { Accounts } from './accounts/accounts.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Clusters } from './clusters/clusters.ts';
import type { EndpointJobs } from './endpoints/endpoint-jobs.ts';
import type { EndpointWorkers } from './endpoints/endpoint-workers.ts';
import type { Images } from './images/images.ts';
import type { Endpoints } from './endpoints/endpoints.ts';
import type { FlashApps } from './flash/flash-apps.ts';
import type { Hub } from './hub/hub.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { S3Keys } from './keys/s3-keys.ts';
import type { LoginRequests } from './keys/login-requests.ts';
import type { Models } from './models/models.ts';
import type { Pods } from './pods/pods.ts';
import type { RegistryDelegations } from './registries/registry-delegations.ts';
import type { Registries } from './registries/registries.ts';
import type { Secrets } from './secrets/secrets.ts';
import type { AccountOverview } from './overview/account-overview.ts';
import type { System } from './system/system.ts';
import type { Templates } from './templates/templates.ts';
import type { VolumeFiles } from './volumes/volume-files.ts';
import type { Volumes } from './volumes/volumes.ts';

/** The services behind the HTTP interfaces. Handlers call only these, never the store or the engines. */
export interface ResourceServices {
  accounts: Accounts;
  keys: ApiKeys;
  templates: Templates;
  endpoints: Endpoints;
  pods: Pods;
  clusters: Clusters;
  volumes: Volumes;
  registries: Registries;
  delegations: RegistryDelegations;
  secrets: Secrets;
  catalog: Catalog;
  hub: Hub;
  billing: Billing;
  flash: FlashApps;
  models: Models;
  loginRequests: LoginRequests;
}

/** With the services that only REST v2 uses. */
export interface AllServices extends ResourceServices {
  images: Images;
  volumeFiles: VolumeFiles;
  system: System;
  s3Keys: S3Keys;
  workers: EndpointWorkers;
  jobs: EndpointJobs;
  /** The events of `GET /v2/events`. */
  events: AccountEvents;
  history: History;
  overview: AccountOverview;
  backups: Backups;
  backupSchedule: BackupSchedule;
  /** The secret that signs the webhooks of an account. */
  webhookSecretFor(accountId: string): string;
}
