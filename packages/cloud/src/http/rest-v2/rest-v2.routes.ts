import type { Sessions } from '../../auth/sessions.ts';
import type { AllServices } from '../../resources/resources.ts';
import type { RestApi } from '../rest/rest-api.routes.ts';
import { apiDocsOperations } from '../rest/api-docs.routes.ts';
import type { Operation } from '../rest/rest-operation.ts';
import type { RestRateLimits } from '../rest/rest-rate-limits.ts';
import { text } from '../rest/json-schema.ts';
import type { EndpointUrls } from '../endpoint-urls.ts';
import { accountOperations } from './account.v2.routes.ts';
import { apiKeyOperations } from './api-keys.v2.routes.ts';
import { auditOperations } from './audit.v2.routes.ts';
import { backupOperations } from './backups.v2.routes.ts';
import { accountBillingOperations } from './billing-accounts.v2.routes.ts';
import { billingOperations } from './billing.v2.routes.ts';
import { buildOperations } from './builds.v2.routes.ts';
import { catalogOperations } from './catalog.v2.routes.ts';
import { clusterOperations } from './clusters.v2.routes.ts';
import { endpointOperations } from './endpoints.v2.routes.ts';
import { sendV2Error, problemSchema, PROBLEM_MEDIA_TYPE } from './rest-v2.errors.ts';
import { eventOperations } from './events.v2.routes.ts';
import { historyOperations } from './history.v2.routes.ts';
import { imageOperations } from './images.v2.routes.ts';
import { jobOperations } from './jobs.v2.routes.ts';
import { networkVolumeOperations } from './network-volumes.v2.routes.ts';
import { overviewOperations } from './overview.v2.routes.ts';
import { podFileOperations } from './pod-files.v2.routes.ts';
import { podOperations } from './pods.v2.routes.ts';
import { registryOperations } from './registries.v2.routes.ts';
import { s3KeyOperations } from './s3-keys.v2.routes.ts';
import { sessionOperations } from './sessions.v2.routes.ts';
import { secretOperations } from './secrets.v2.routes.ts';
import { systemOperations } from './system.v2.routes.ts';
import { templateOperations } from './templates.v2.routes.ts';
import { terminalOperations } from './terminals.v2.routes.ts';
import { volumeFileOperations } from './volume-files.v2.routes.ts';
import { workerOperations } from './workers.v2.routes.ts';

/** 100 KiB hold any definition; what is larger is data and belongs elsewhere. */
const BODY_LIMIT = 102_400;
const TITLE = 'Berth REST v2';
const VERSION = '2.0.0';

const TAGS = [
  {
    name: 'Serverless',
    description: 'Endpoints: addresses that take jobs or HTTP requests and run them on workers',
  },
  { name: 'Jobs', description: 'The job API: requests to queue endpoints, and their results' },
  { name: 'Pods', description: 'Rented machines' },
  { name: 'Clusters', description: 'Several pods with one network' },
  { name: 'Templates', description: 'Reusable container configurations' },
  { name: 'Network volumes', description: 'Disks that outlive what mounts them' },
  { name: 'Registries', description: 'Credentials and delegations for private images' },
  { name: 'Images', description: 'Folders that were uploaded for the process engine to run' },
  { name: 'Catalog', description: 'What can be rented here, and how much of it is free' },
  { name: 'Billing', description: 'What was used, and what that cost' },
  { name: 'Monitoring', description: 'What happens now, and what has happened' },
  { name: 'Account', description: 'Secrets, SSH keys and the audit log' },
  { name: 'API keys', description: 'Who may do what' },
  { name: 'Sessions', description: 'Who is signed in to the console' },
  { name: 'Accounts', description: 'For the operator of this installation' },
  { name: 'About', description: 'This description' },
];

export interface RestV2Services extends AllServices {
  sessions: Sessions;
  /** The URL under which clients reach this server. */
  origin(): string;
}

export function restV2Api(
  resources: RestV2Services,
  urls: EndpointUrls,
  limiter: RestRateLimits | undefined,
): RestApi {
  const operations: Operation[] = [
    ...endpointOperations(resources, urls),
    ...workerOperations(resources),
    ...jobOperations(resources),
    ...buildOperations(resources),
    ...podOperations(resources),
    ...podFileOperations(resources),
    ...clusterOperations(resources),
    ...terminalOperations(),
    ...imageOperations(resources),
    ...templateOperations(resources),
    ...networkVolumeOperations(resources),
    ...volumeFileOperations(resources),
    ...registryOperations(resources),
    ...catalogOperations(resources),
    ...billingOperations(resources),
    ...accountBillingOperations(resources),
    ...eventOperations(resources),
    ...historyOperations(resources),
    ...accountOperations(resources),
    ...overviewOperations(resources),
    ...auditOperations(resources),
    ...backupOperations(resources),
    ...systemOperations(resources),
    ...secretOperations(resources),
    ...apiKeyOperations(resources),
    ...s3KeyOperations(resources),
    ...sessionOperations(resources),
  ];
  operations.push(...apiDocsOperations(TITLE, () => openApi(operations)));
  return {
    prefix: '/v2',
    interface: 'rest-v2',
    operations,
    bodyLimit: BODY_LIMIT,
    sendError: sendV2Error,
    ...(limiter !== undefined && {
      checkRateLimit: (caller) => limiter.consume(caller.keyId ?? caller.accountId),
    }),
  };
}

async function openApi(operations: Operation[]) {
  const [{ openApiDocument }, { jobApiOperations }] = await Promise.all([
    import('../rest/openapi.ts'),
    import('../jobs/jobs.openapi.ts'),
  ]);
  return openApiDocument({
    title: TITLE,
    version: VERSION,
    description:
      'Manages what an account owns, and runs jobs on its queue endpoints. Lists are wrapped, unknown ' +
      'fields are refused, errors are RFC 9457 problems. The job API answers errors as {"error": "…"} ' +
      'and passes unknown fields on to the worker.',
    prefix: '/v2',
    serverUrl: '/',
    operations: [...operations, ...jobApiOperations],
    errorSchema: problemSchema,
    errorMediaType: PROBLEM_MEDIA_TYPE,
    // 400: a body that is no JSON, a NUL in a text; every request can be so.
    commonErrorStatuses: [400, 401, 403, 429, 500, 503],
    securityDescription: 'An API key as `Authorization: Bearer <key>`',
    tags: TAGS,
    responseHeaders: {
      'x-request-id': { description: 'Names this request in the log and the audit log', schema: text() },
      RateLimit: {
        description: 'What is left in each window, on answers to a valid key while limits are on',
        schema: text(),
      },
      'RateLimit-Policy': { description: 'The quotas and windows', schema: text() },
    },
  });
}
