import type { AllResources } from '../../resources/resources.ts';
import type { RestFace } from '../rest/face.ts';
import { metaOperations } from '../rest/meta.ts';
import type { Operation } from '../rest/operation.ts';
import type { RateLimiter } from '../rest/rate-limit.ts';
import { text } from '../rest/schema.ts';
import type { Urls } from '../urls.ts';
import { accountOperations } from './account.ts';
import { apiKeyOperations } from './api-keys.ts';
import { billingOperations } from './billing.ts';
import { buildOperations } from './builds.ts';
import { catalogOperations } from './catalog.ts';
import { clusterOperations } from './clusters.ts';
import { endpointOperations } from './endpoints.ts';
import { failV2, problem, PROBLEM_TYPE } from './failures.ts';
import { imageOperations } from './images.ts';
import { networkVolumeOperations } from './network-volumes.ts';
import { podFileOperations } from './pod-files.ts';
import { podOperations } from './pods.ts';
import { registryOperations } from './registries.ts';
import { s3KeyOperations } from './s3-keys.ts';
import { secretOperations } from './secrets.ts';
import { templateOperations } from './templates.ts';
import { terminalOperations } from './terminals.ts';
import { workerOperations } from './workers.ts';

/** 100 KiB hold any definition; what is larger is data and belongs elsewhere. */
const BODY_LIMIT = 102_400;
const VERSION = '2.0.0';

const TAGS = [
  {
    name: 'Serverless',
    description: 'Endpoints: addresses that take jobs or HTTP requests and run them on workers',
  },
  { name: 'Pods', description: 'Rented machines' },
  { name: 'Clusters', description: 'Several pods with one network' },
  { name: 'Templates', description: 'Reusable container configurations' },
  { name: 'Network volumes', description: 'Disks that outlive what mounts them' },
  { name: 'Registries', description: 'Credentials and delegations for private images' },
  { name: 'Images', description: 'Folders that were uploaded for the process engine to run' },
  { name: 'Catalog', description: 'What can be rented here, and how much of it is free' },
  { name: 'Billing', description: 'What was used, and what that cost' },
  { name: 'Account', description: 'Secrets, SSH keys and the audit log' },
  { name: 'API keys', description: 'Who may do what' },
  { name: 'Accounts', description: 'For the operator of this installation' },
  { name: 'About', description: 'This description' },
];

export function restV2(resources: AllResources, urls: Urls, limiter: RateLimiter | undefined): RestFace {
  const operations: Operation[] = [
    ...endpointOperations(resources, urls),
    ...workerOperations(resources),
    ...buildOperations(resources),
    ...podOperations(resources),
    ...podFileOperations(resources),
    ...clusterOperations(resources),
    ...terminalOperations(),
    ...imageOperations(resources),
    ...templateOperations(resources),
    ...networkVolumeOperations(resources),
    ...registryOperations(resources),
    ...catalogOperations(resources),
    ...billingOperations(resources),
    ...accountOperations(resources),
    ...secretOperations(resources),
    ...apiKeyOperations(resources),
    ...s3KeyOperations(resources),
  ];
  operations.push(...metaOperations(() => describe(operations)));
  return {
    prefix: '/v2',
    interface: 'rest-v2',
    operations,
    bodyLimit: BODY_LIMIT,
    fail: failV2,
    ...(limiter !== undefined && { meter: (caller) => limiter.count(caller.keyId ?? caller.accountId) }),
  };
}

async function describe(operations: Operation[]) {
  const { openApiDocument } = await import('../rest/openapi.ts');
  return openApiDocument({
    title: 'Berth REST v2',
    version: VERSION,
    description:
      'Manages what an account owns. Lists are wrapped, bodies are closed, failures are RFC 9457 problems.',
    prefix: '/v2',
    serverUrl: '/',
    operations,
    errorSchema: problem,
    errorMediaType: PROBLEM_TYPE,
    // 400: a body that is no JSON, a NUL in a text; every request can be so.
    commonFailures: [400, 401, 403, 429, 500, 503],
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
