import type { Billing } from '../metering/billing.ts';
import type { Accounts } from './accounts/accounts.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Clusters } from './clusters/clusters.ts';
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
import type { Templates } from './templates/templates.ts';
import type { Volumes } from './volumes/volumes.ts';

/** What people own, each with its rules. The faces speak to these and to nothing below. */
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

/** With what REST v2 alone shows. */
export interface AllServices extends ResourceServices {
  images: Images;
  s3Keys: S3Keys;
  workers: EndpointWorkers;
  /** What the webhooks of an account are signed with. */
  webhookSecretFor(accountId: string): string;
}
