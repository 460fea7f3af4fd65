import type { Readable, Writable } from 'node:stream';
import type { EngineKind } from '../domain/placement/engine-capacity.ts';

/** What is to run. */
export interface InstanceSpec {
  /** Letters, digits, dots, dashes and underscores. */
  id: string;
  /** Kept with the instance, for whoever lists it later. */
  labels: Readonly<Record<string, string>>;
  image: string;
  /** Takes the place of the image's own, as with containers: an empty list leaves the image's. */
  command: { entrypoint: readonly string[]; cmd: readonly string[] };
  env: Readonly<Record<string, string>>;
  ports: readonly InstancePort[];
  mounts: readonly InstanceMount[];
  /** Comes first on the Python path. Where it cannot be had, the instance runs without it and its log says so. */
  pythonHook?: PythonHook;
  /** The network that it shares with others, where it has one. It is made with the first of them and goes with the last. */
  network?: InstanceNetwork;
  cpu: number;
  memoryInGb: number;
  gpus: GpuRequest | null;
  containerDiskInGb: number;
  /** To fetch the image with. */
  registry?: { username: string; password: string };
  /** Told how the start goes on, line by line; the same lines are in the log as system lines. */
  onProgress?: (line: string) => void;
}

export interface InstancePort {
  port: number;
  protocol: 'http' | 'tcp';
  /**
   * The environment variable that tells the instance the number to listen on, such as PORT. The
   * engine sets it, over what `env` says: to `port` where an instance has its ports to itself,
   * to a free one of the machine where it does not.
   */
  listenPortVariable?: string;
  /** The environment variable that tells the instance under which number it is reached from outside. */
  publicPortVariable?: string;
  /** That number should be the one inside, where it is free. */
  preferSamePublicPort?: true;
}

export interface InstanceMount {
  /** A folder of the machine, absolute. */
  source: string;
  /** Where the instance sees it, absolute. */
  path: string;
}

/** A Python package whose start-up hook runs in every Python of the instance. */
export interface PythonHook {
  /** The folder of the package on this machine. */
  source: string;
  /** Where a container sees it. */
  path: string;
  /** The folder below it that belongs on the Python path. */
  entry: string;
}

export interface InstanceNetwork {
  /** The same for all that share it. */
  name: string;
  subnet: string;
  /** This instance's own, always the same. */
  address: string;
  /** Names under which the others find it. */
  aliases: readonly string[];
}

export interface GpuRequest {
  typeId: string;
  count: number;
  /** These and no others, as the machine counts its GPUs. */
  indexes?: readonly number[];
}

/** What `adopt` finds the instance by. Plain JSON, to be saved by whoever started it; only its driver reads the state. */
export interface InstanceHandle {
  readonly engine: EngineKind;
  readonly id: string;
  readonly state: { readonly [name: string]: string | number | null };
}

export type InstanceStatus = 'starting' | 'running' | 'exited';

export interface Instance {
  id: string;
  labels: Readonly<Record<string, string>>;
  image: string;
  handle: InstanceHandle;
  status: InstanceStatus;
  startedAt: number;
  endedAt: number | null;
  /** As containers have it: 128 + n after signal n. Null while it runs, and where nobody saw the end. */
  exitCode: number | null;
  /** The signal's name, where the exit code tells one. */
  signal: string | null;
}

export interface InstanceEvent {
  id: string;
  status: InstanceStatus;
  exitCode: number | null;
  signal: string | null;
  at: number;
}

export interface ExecutionOptions {
  /** In a terminal of this size. Its output is all in `stdout` then. */
  tty?: TerminalSize;
  /** Added to the instance's own. */
  env?: Readonly<Record<string, string>>;
}

export interface TerminalSize {
  columns: number;
  rows: number;
}

/** A command that runs in an instance. */
export interface Execution {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when it has ended and its output is complete. */
  readonly exited: Promise<{ exitCode: number; signal: string | null }>;
  /** Without a terminal this does nothing. */
  resize(size: TerminalSize): Promise<void>;
  kill(signal?: NodeJS.Signals): void;
}

export interface InstanceAddress {
  host: string;
  port: number;
}

export interface InstanceUsage {
  /** Cores in use, over the time since it was last asked. */
  cpu: number;
  memoryInBytes: number;
  /** Of each GPU that it holds, in their order. */
  gpus: readonly GpuUsage[];
}

/** Shares are per cent. A virtual GPU does nothing. */
export interface GpuUsage {
  util: number;
  memoryUtil: number;
}
