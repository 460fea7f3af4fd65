import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DEFAULT_DISK_RESERVE_BYTES, DEFAULT_LOG_LIMITS, LOG_RETENTION_MS } from '../../domain/limits.ts';
import { type Clock, systemClock } from '../../support/clock.ts';
import { setPassable } from '../../support/data-directory.ts';
import { randomIds } from '../../support/ids.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import {
  PROGRAM_FOLDERS,
  PYTHON_WORKER_PACKAGE,
  RUNNABLE_EXAMPLES,
  workerModule,
} from '../../support/program-files.ts';
import { DEFAULT_USER_RANGE } from '../../support/user-range.ts';
import type { DiskGuard } from '../disk-guard.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import { LogRetention } from '../logs/log-retention.ts';
import { HostAllocations } from './host-allocations.ts';
import { ImageEnvironments } from './image-environments.ts';
import { tenantBuilds } from './isolation/tenant-builds.ts';
import { Tenants } from './isolation/tenant.ts';
import type { LocalImagePaths } from './local-images.ts';
import { PeerProcessInstances } from './peer-process-instances.ts';
import { processDiskGuard } from './process-disk.ts';
import type { ProcessEngineOptions } from './process-engine-options.ts';
import { ProcessHost } from './process-host.ts';
import { ProcessRegistry } from './process-registry.ts';
import { ProcessStarter } from './process-starter.ts';
import { ProcessSweeper } from './process-sweeper.ts';
import { RemovedFolders } from './removed-folders.ts';

/** What the process engine consists of. */
export interface ProcessComponents {
  clock: Clock;
  /** The folder of all instance folders. */
  path: string;
  imagePaths: LocalImagePaths;
  mutex: KeyedMutex;
  host: ProcessHost;
  allocations: HostAllocations;
  logs: LogRetention;
  registry: ProcessRegistry;
  starter: ProcessStarter;
  sweeper: ProcessSweeper;
  peers: PeerProcessInstances;
  tenants: Tenants;
  environments: ImageEnvironments;
  removed: RemovedFolders;
  diskGuard: DiskGuard;
}

/** Creates the components from the options, and connects them. */
export function createProcessComponents(options: ProcessEngineOptions): ProcessComponents {
  const { clock = systemClock, ids = randomIds, log, logLimits = DEFAULT_LOG_LIMITS } = options;
  const data = options.data === undefined ? '' : resolve(options.data);
  const path = join(data, 'instances');
  const onProblem = (what: string, error: unknown): void => log?.warn({ err: error }, what);
  const mutex = new KeyedMutex();
  const host = new ProcessHost(options, clock);
  const allocations = new HostAllocations(options.gpus ?? new GpuAllocator());
  const logs = new LogRetention(join(data, 'logs'), options.logRetentionMs ?? LOG_RETENTION_MS, clock);
  const removed = new RemovedFolders({ path, ids, onProblem });
  const imagePaths = {
    images: join(data, 'images'),
    examples: options.examples === undefined ? RUNNABLE_EXAMPLES : options.examples,
    workerModule: options.workerModule ?? workerModule(),
    pythonCache: join(data, 'cache', 'python'),
  };
  const readable = [
    ...PROGRAM_FOLDERS,
    dirname(process.execPath),
    dirname(realpathSync(imagePaths.workerModule)),
    ...(options.readablePaths ?? []),
  ];
  const tenants = new Tenants({
    setting: options.isolation ?? 'auto',
    range: options.users ?? DEFAULT_USER_RANGE,
    usersFolder: join(data, 'users'),
    ownPorts: options.ownPorts,
    data,
    onProbed: (mode) => {
      if (existsSync(data)) setPassable(data, mode === 'users');
    },
    log,
  });
  const environments = new ImageEnvironments({
    path: join(data, 'python'),
    workerPackage: PYTHON_WORKER_PACKAGE,
    imagePaths,
    deployedImages: options.deployedImages ?? (() => Promise.resolve([])),
    clock,
    ids,
    run: tenantBuilds({
      tenantOf: (accountId) => tenants.startingTenantOf(accountId),
      data,
      readable: () => readable.filter((one) => existsSync(one)),
      ids,
    }),
    ...options.python,
  });
  const registry = new ProcessRegistry({
    path,
    mutex,
    logs,
    logLimits,
    allocations,
    clock,
    volumeSize: options.volumeSize,
    onProblem,
  });
  const starter = new ProcessStarter({
    path,
    data,
    imagePaths,
    readable,
    registry,
    logs,
    logLimits,
    environments,
    host,
    tenants,
    allocations,
    removed,
    clock,
    ids,
  });
  return {
    clock,
    path,
    imagePaths,
    mutex,
    host,
    allocations,
    logs,
    registry,
    starter,
    sweeper: new ProcessSweeper({ registry, mutex, logs, removed, environments, onProblem }),
    peers: new PeerProcessInstances((id) => join(path, id), clock),
    tenants,
    environments,
    removed,
    diskGuard: processDiskGuard({
      path,
      instances: () => registry.values().filter((one) => !registry.isForeign(one)),
      reserveBytes: options.diskReserve ?? DEFAULT_DISK_RESERVE_BYTES,
      onEnded: (id, reason) => log?.warn({ instance: id, reason }, 'an instance was ended: no space'),
      onProblem,
    }),
  };
}
