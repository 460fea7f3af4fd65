import type { ResourceServices } from '../../resources/resources.ts';
import { BerthError } from '../../support/errors.ts';
import type { RestApi } from '../rest/rest-api.routes.ts';
import { apiDocsOperations } from '../rest/api-docs.routes.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { text } from '../rest/json-schema.ts';
import { billingOperations } from './billing.v1.routes.ts';
import { endpointOperations } from './endpoints.v1.routes.ts';
import { sendV1Error, v1ErrorSchema } from './rest-v1.errors.ts';
import { networkVolumeOperations } from './network-volumes.v1.routes.ts';
import { podOperations } from './pods.v1.routes.ts';
import { registryOperations } from './registries.v1.routes.ts';
import { templateOperations } from './templates.v1.routes.ts';
import { workerLogOperations } from './worker-logs.v1.routes.ts';

const BODY_LIMIT = 1_048_576;
/** The version that the published description of v1 carries. */
const TITLE = 'Berth REST v1';
const VERSION = '0.1.0';
/** When v1 was announced to end: 1 August 2026. */
const DEPRECATED_SINCE = '@1785542400';

export interface RestV1Options {
  enabled: boolean;
  /** The last day, as YYYY-MM-DD. */
  sunset: string;
}

export function restV1Api(resources: ResourceServices, { enabled, sunset }: RestV1Options): RestApi {
  const operations: Operation[] = [
    ...podOperations(resources),
    ...endpointOperations(resources),
    ...workerLogOperations(resources),
    ...templateOperations(resources),
    ...networkVolumeOperations(resources),
    ...registryOperations(resources),
    ...billingOperations(resources),
  ];
  operations.push(...apiDocsOperations(TITLE, () => openApi(operations)));
  const headers = {
    deprecation: DEPRECATED_SINCE,
    sunset: new Date(sunset).toUTCString(),
    link: '</v2/docs>; rel="successor-version"',
  };
  return {
    prefix: '/v1',
    interface: 'rest-v1',
    operations,
    bodyLimit: BODY_LIMIT,
    sendError: sendV1Error,
    headers: () => headers,
    disabledError: () =>
      enabled
        ? undefined
        : new BerthError(
            'retired',
            'REST v1 is turned off here; use REST v2 at /v2 (its reference is at /v2/docs)',
          ),
  };
}

async function openApi(operations: Operation[]) {
  const { openApiDocument } = await import('../rest/openapi.ts');
  return openApiDocument({
    title: TITLE,
    version: VERSION,
    description: 'The older management API, served for the clients that use it. New clients use REST v2.',
    prefix: '',
    serverUrl: '/v1',
    operations,
    errorSchema: v1ErrorSchema,
    errorMediaType: 'application/json',
    commonErrorStatuses: [400, 401, 403, 410, 429, 500, 503],
    securityDescription: 'An API key as `Authorization: Bearer <key>`',
    tags: [
      { name: 'Pods', description: 'Rented machines' },
      { name: 'Endpoints', description: 'Serverless addresses that take jobs' },
      { name: 'Templates', description: 'Reusable container configurations' },
      { name: 'Network volumes', description: 'Disks that outlive what mounts them' },
      { name: 'Container registry authentications', description: 'Credentials for private images' },
      { name: 'Billing', description: 'What was used, and what that cost' },
      { name: 'About', description: 'This description' },
    ],
    responseHeaders: {
      Deprecation: { description: 'Since when v1 is deprecated', schema: text() },
      Sunset: { description: 'The last day that is promised', schema: text() },
    },
  });
}
