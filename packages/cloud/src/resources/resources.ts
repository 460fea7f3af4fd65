import type { Billing } from '../metering/billing.ts';
import type { Accounts } from './accounts/accounts.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Clusters } from './clusters/clusters.ts';
import type { EndpointWorkers } from './endpoints/workers.ts';
import type { Images } from './images/images.ts';
import type { Endpoints } from './endpoints/endpoints.ts';
import type { Flash } from './flash/flash.ts';
import type { Hub } from './hub/hub.ts';
import type { Keys } from './keys/keys.ts';
import type { S3Keys } from './keys/s3-keys.ts';
import type { LoginRequests } from './keys/login-requests.ts';
import type { Models } from './models/models.ts';
import type { Pods } from './pods/pods.ts';
import type { Delegations } from './registries/delegations.ts';
import type { Registries } from './registries/registries.ts';
import type { Secrets } from './secrets/secrets.ts';
import type { Templates } from './templates/templates.ts';
import type { Volumes } from './volumes/volumes.ts';

/** What people own, each with its rules. The faces speak to these and to nothing below. */
export interface Resources {
  accounts: Accounts;
  keys: Keys;
  templates: Templates;
  endpoints: Endpoints;
  pods: Pods;
  clusters: Clusters;
  volumes: Volumes;
  registries: Registries;
  delegations: Delegations;
  secrets: Secrets;
  catalog: Catalog;
  hub: Hub;
  billing: Billing;
  flash: Flash;
  models: Models;
  loginRequests: LoginRequests;
}

/** With what REST v2 alone shows. */
export interface AllResources extends Resources {
  images: Images;
  s3Keys: S3Keys;
  workers: EndpointWorkers;
  /** What the webhooks of an account are signed with. */
  webhookSecretOf(accountId: string): string;
}
