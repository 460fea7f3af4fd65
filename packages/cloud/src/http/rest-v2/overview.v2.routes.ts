import { POD_STATUSES } from '../../domain/pods/pod-record.ts';
import type { AllServices } from '../../resources/resources.ts';
import { MAX_OVERVIEW_ENDPOINTS, MAX_OVERVIEW_PODS } from '../../resources/overview/account-overview.ts';
import { boolean, integer, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';

const workers = object({
  idle: integer(),
  initializing: integer(),
  ready: integer(),
  running: integer(),
  throttled: integer(),
  unhealthy: integer(),
});
const activeEndpoint = object({
  id: text(),
  name: text(),
  type: stringEnum(['QUEUE', 'LOAD_BALANCER']),
  workersMax: integer(),
  jobs: object({
    inQueue: integer(),
    inProgress: integer(),
    completed: integer(),
    failed: integer(),
    retried: integer(),
  }),
  failedStored: boolean({ description: 'Whether any of the failed jobs is still stored' }),
  workers,
});
const overview = named(
  'AccountOverview',
  object({
    endpoints: integer({ description: 'How many there are' }),
    jobs: object({ inQueue: integer(), inProgress: integer() }),
    workers,
    active: list(activeEndpoint, {
      description: `Endpoints with jobs or workers, the longest queue first; ${MAX_OVERVIEW_ENDPOINTS} at most`,
    }),
    pods: object({
      total: integer(),
      byStatus: object({}, Object.fromEntries(POD_STATUSES.map((status) => [status, integer()]))),
      failed: list(object({ id: text(), name: text(), statusDetail: nullable(text()) }), {
        description: `Pods that ended with an error, the latest first; ${MAX_OVERVIEW_PODS} at most`,
      }),
    }),
  }),
);

/** The account in numbers, in one bounded answer. */
export function overviewOperations({ overview: service }: Pick<AllServices, 'overview'>): Operation[] {
  return [
    operation({
      id: 'getAccountOverview',
      method: 'GET',
      path: '/account/overview',
      tag: 'Monitoring',
      summary: 'What runs in your account, and what has failed',
      description:
        'Berth only. Jobs and workers of endpoints whose jobs the key may not read are not counted.',
      access: 'read',
      status: 200,
      response: overview,
      handle: async ({ caller }) => service.get(caller),
    }),
  ];
}
