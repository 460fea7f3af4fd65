import { ACCOUNT_ISOLATION } from '../../domain/placement/engine-capacity.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import type { AllServices } from '../../resources/resources.ts';
import type { DataCenterState, SystemState } from '../../resources/system/system.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import {
  boolean,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';

const server = object({
  host: text({ description: 'The name of its machine' }),
  pid: integer(),
  startedAt: dateTime('When it was started'),
  leading: boolean({ description: 'Whether it starts and stops pods and workers' }),
  node: text({ description: 'The version of Node' }),
  platform: text(),
  memoryBytes: integer({ description: 'What its process takes' }),
  machineMemoryBytes: integer({ description: 'What its machine has' }),
});
const peer = named(
  'SystemServer',
  object({
    id: text(),
    address: text({ description: 'Where the other servers reach it' }),
    version: text({ description: 'Of Berth' }),
    startedAt: dateTime('When it was started'),
    leading: boolean({ description: 'Whether it starts and stops pods and workers' }),
    workerShards: integer({
      description: 'How many shards of workers it manages; without workerShards, the leader has the only one',
    }),
    silentSeconds: number({ description: 'Since its last sign of life, which it gives every second' }),
  }),
);
const gpu = object({
  id: text(),
  total: integer(),
  free: integer(),
  virtual: boolean({ description: 'Only a name: there is no hardware behind it' }),
  memory: integer({ description: 'In GB; 0 where the driver does not say' }),
  cudaVersion: nullable(text()),
});
const node = object({
  name: text(),
  ready: boolean({ description: 'Whether it is up' }),
  schedulable: boolean({ description: 'Whether it takes new pods and workers' }),
  cores: number({ description: 'That pods and workers can use' }),
  memory: number({ description: 'In GB, that pods and workers can use' }),
  gpus: list(gpu),
});
const dataCenter = named(
  'SystemDataCenter',
  object({
    id: text(),
    name: text(),
    engine: text({ examples: ['process'] }),
    isolation: nullable(stringEnum(ACCOUNT_ISOLATION, { description: 'How accounts are kept apart' })),
    cpu: object({ model: text(), cores: integer(), threads: integer() }),
    memory: number({ description: 'In GB; 0 while its engine does not answer' }),
    freeMemory: nullable(number({ description: 'In GB' })),
    gpus: list(gpu, { description: 'One entry for each machine and GPU type' }),
    nodes: list(node, { description: 'The nodes of a Kubernetes cluster; empty for other engines' }),
    pods: integer({ description: 'Pods that hold a place there' }),
    workers: integer({ description: 'Workers that have not ended' }),
  }),
);
const queueDepth = object({
  endpointId: text(),
  queued: integer(),
  running: integer(),
  oldestWait: nullable(number({ description: 'Seconds that the oldest job of normal priority has waited' })),
});
const check = object(
  { check: text(), ok: boolean(), found: text() },
  { remedy: text({ description: 'What to do where it is not ok' }) },
);
const system = named(
  'System',
  object({
    version: text({ description: 'Of Berth' }),
    database: stringEnum(['sqlite', 'postgres']),
    server,
    servers: list(peer, { description: 'All servers on this PostgreSQL; empty with SQLite' }),
    dataCenters: list(dataCenter),
    counts: object({ accounts: integer(), activePods: integer(), liveWorkers: integer() }),
    queue: object({
      queued: integer({ description: 'Jobs that wait, of all endpoints' }),
      oldestWait: nullable(number({ description: 'In seconds; null where nothing waits' })),
      longest: list(queueDepth, { description: 'The longest queues' }),
    }),
    checks: object({
      ranAt: dateTime('They are run at most once a minute'),
      results: list(check),
    }),
    backups: object({
      target: text({ description: 'Where scheduled backups go; empty where none are made' }),
      lastAt: nullable(dateTime('When the last scheduled backup ended')),
      error: nullable(text({ description: 'Why it failed; null where it went well' })),
    }),
  }),
);

/** The whole installation at a glance, for its operator. */
export function systemOperations({ system: service }: Pick<AllServices, 'system'>): Operation[] {
  return [
    operation({
      id: 'getSystem',
      method: 'GET',
      path: '/system',
      tag: 'Accounts',
      summary: 'Data centers, queues, checks and backups of this installation',
      access: 'operator',
      status: 200,
      response: system,
      handle: async ({ caller }) => serializeSystem(await service.describe(caller)),
    }),
  ];
}

function serializeSystem(state: SystemState): Static<typeof system> {
  const waitOf = (at: number | null): number | null =>
    at === null ? null : Math.max(0, (state.now - at) / 1000);
  const { queue, checks, backups } = state;
  return {
    version: state.version,
    database: state.database,
    server: { ...state.server, startedAt: isoTime(state.server.startedAt) },
    servers: state.servers.map(({ id, address, version, startedAt, isLeader, workerShards, silentMs }) => ({
      id,
      address,
      version,
      startedAt: isoTime(startedAt),
      leading: isLeader,
      workerShards,
      silentSeconds: silentMs / 1000,
    })),
    dataCenters: state.dataCenters.map(serializeDataCenter),
    counts: state.counts,
    queue: {
      queued: queue.queued,
      oldestWait: waitOf(queue.oldestQueuedAt),
      longest: queue.longest.map(({ oldestQueuedAt, ...depth }) => ({
        ...depth,
        oldestWait: waitOf(oldestQueuedAt),
      })),
    },
    checks: { ranAt: isoTime(checks.ranAt), results: checks.results },
    backups: { ...backups, lastAt: isoTimeOrNull(backups.lastAt) },
  };
}

export function serializeDataCenter(state: DataCenterState): Static<typeof dataCenter> {
  const { dataCenter: center, capacity, isolation, pods, workers } = state;
  return {
    id: center.id,
    name: center.name,
    engine: center.engine,
    isolation,
    cpu: capacity.cpu,
    memory: capacity.memoryInGb,
    freeMemory: capacity.freeMemoryInGb ?? null,
    gpus: capacity.gpus.map(serializeGpu),
    nodes: (capacity.nodes ?? []).map(({ memoryInGb, gpus, ...rest }) => ({
      ...rest,
      memory: memoryInGb,
      gpus: gpus.map(serializeGpu),
    })),
    pods,
    workers,
  };
}

function serializeGpu({ gpuTypeId, memoryInGb, ...rest }: GpuCapacity): Static<typeof gpu> {
  return {
    id: gpuTypeId,
    memory: memoryInGb,
    total: rest.total,
    free: rest.free,
    virtual: rest.virtual,
    cudaVersion: rest.cudaVersion,
  };
}
