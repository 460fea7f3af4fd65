import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import type { LogLimits } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import type { Log } from '../../support/log.ts';
import type { UserRange } from '../../support/user-range.ts';
import type { VolumeSizeReader } from '../disk-guard.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import type { Machine } from '../machine.ts';
import type { ImageEnvironmentsOptions } from './image-environments.ts';
import type { IsolationSetting } from './isolation/isolation.ts';

export interface ProcessEngineOptions {
  /** Offered where the machine has no real GPU. */
  virtualGpus: readonly GpuCapacity[];
  /** Shared with the other engines of this machine. */
  gpus?: GpuAllocator;
  clock?: Clock;
  ids?: Ids;
  log?: Log;
  readMachine?: () => Promise<Machine>;
  /** Free memory of the machine, in bytes. */
  freeMemory?: () => number;
  /** Holds the instances, their logs and their images. Without it nothing can be started. */
  data?: string;
  /** A folder whose subfolders are images; null for none. */
  examples?: string | null;
  /** The worker SDK's module, which runs TypeScript and JavaScript handlers. */
  workerModule?: string;
  /** How long the log of a removed instance is kept. */
  logRetentionMs?: number;
  /** How much of an instance's log is kept, and how much of its output is logged per second. */
  logLimits?: LogLimits;
  /** How much of the disk instances have to leave free. */
  diskReserve?: number;
  /** The sizes of volumes now: they can grow while an instance runs. */
  volumeSize?: VolumeSizeReader;
  /** Whether to use cgroups where this user may create them. */
  useCgroups?: boolean;
  /** How Python environments are built and kept. */
  python?: Pick<
    ImageEnvironmentsOptions,
    'eviction' | 'uv' | 'installUv' | 'interpreters' | 'run' | 'archives'
  >;
  /** The local images of all endpoints: their environments are kept. */
  deployedImages?: ImageEnvironmentsOptions['deployedImages'];
  /** How instances of other accounts than root are kept apart. Default: as well as this machine can. */
  isolation?: IsolationSetting;
  /** The user ids of accounts. */
  users?: UserRange;
  /** Ports of Berth itself, which instances of all accounts reach. */
  ownPorts?: readonly number[];
  /** Folders that instances of all accounts may read. */
  readablePaths?: readonly string[];
}
