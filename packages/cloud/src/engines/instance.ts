import type { Readable, Writable } from 'node:stream';
import type { ContainerSandbox } from '../domain/placement/container-sandbox.ts';
import type { EngineKind } from '../domain/placement/engine-capacity.ts';

/** The specification of an instance. */
export interface InstanceSpec {
  /** Letters, digits, dots, dashes and underscores. */
  id: string;
  /** Stored with the instance and returned by `list`. */
  labels: Readonly<Record<string, string>>;
  image: string;
  /** Overrides the image's command, as with containers: an empty list keeps the image's. */
  command: { entrypoint: readonly string[]; cmd: readonly string[] };
  env: Readonly<Record<string, string>>;
  ports: readonly InstancePort[];
  mounts: readonly InstanceMount[];
  /** Comes first on PYTHONPATH. If it is not available, the instance runs without it and its log says so. */
  pythonHook?: PythonHook;
  /**
   * The network it shares with other instances. It is created with the first of them and deleted with the
   * last.
   */
  network?: InstanceNetwork;
  /** How its container is confined, as the data center is configured. */
  sandbox?: ContainerSandbox;
  cpu: number;
  memoryInGb: number;
  gpus: GpuRequest | null;
  containerDiskInGb: number;
  /** It may be ended to make room for others. */
  interruptible?: boolean;
  /** Credentials to pull the image. */
  registry?: { username: string; password: string };
  /** Called with each progress line of the start; the same lines are system lines of the log. */
  onProgress?: (line: string) => void;
  /**
   * Called when the image is on the machine, with the environment that it needs, before the instance starts.
   */
  onImageReady?: () => void;
}

export interface InstancePort {
  port: number;
  protocol: 'http' | 'tcp';
  /**
   * The environment variable with the port to listen on, such as PORT. The engine sets it, over `env`: to
   * `port` if the instance has its own network, to a free port of the host otherwise.
   */
  listenPortVariable?: string;
  /** The environment variable with the port's public number. */
  publicPortVariable?: string;
  /** Use the same number outside, if it is free. */
  preferSamePublicPort?: true;
}

export interface InstanceMount {
  /** An absolute path on the host. */
  source: string;
  /** The absolute path inside the instance. */
  path: string;
  /** The instance may not change it, where the engine can prevent that. */
  readOnly?: boolean;
  /** The volume that it is, for engines that keep volumes themselves. */
  volume?: InstanceVolume;
}

export interface InstanceVolume {
  id: string;
  sizeInGb: number;
  /** Several instances may use it at once, on different machines. */
  shared: boolean;
  /** The tier, such as STANDARD. */
  type?: string;
}

/** A Python package whose start-up hook runs in every Python process of the instance. */
export interface PythonHook {
  /** The package's folder on the host. */
  source: string;
  /** Its path inside a container. */
  path: string;
  /** The subfolder that is added to PYTHONPATH. */
  entry: string;
}

export interface InstanceNetwork {
  /** The same for all its members. */
  name: string;
  /** Null where the engine chooses the addresses itself, and members are reached by name. */
  subnet: string | null;
  /** The fixed address of this instance; without a subnet, it means nothing. */
  address: string | null;
  /**
   * The environment variable with its address. The engine sets it, over `env`, where it chooses the address.
   */
  addressVariable?: string;
  /** Host names under which the other members reach it. An engine that has only one uses the first. */
  aliases: readonly string[];
}

export interface GpuRequest {
  typeId: string;
  count: number;
  /** Exactly these GPUs, by the driver's indexes. */
  indexes?: readonly number[];
}

/** Identifies an instance for `adopt`. Plain JSON that the caller saves; only the driver reads the state. */
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
  /** Its address in the network of its cluster, where the engine chose it. */
  networkAddress?: string;
  /** 128 + n after signal n, as with containers. Null while it runs, or if the exit was not observed. */
  exitCode: number | null;
  /** The signal's name, if the exit code stands for one. */
  signal: string | null;
  /** Why it ended, where that was no fault of its own: its machine was lost, or it had to make room. */
  disrupted?: string;
}

export interface InstanceEvent {
  id: string;
  status: InstanceStatus;
  exitCode: number | null;
  signal: string | null;
  /** Why it ended, where that was no fault of its own. */
  disrupted?: string;
  at: number;
}

export interface ExecutionOptions {
  /** Run in a terminal of this size. All output is in `stdout` then. */
  tty?: TerminalSize;
  /** Added to the instance's environment. */
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
  /** Resolves when the command has ended and its output is complete. */
  readonly exited: Promise<{ exitCode: number; signal: string | null }>;
  /** Does nothing without a terminal. */
  resize(size: TerminalSize): Promise<void>;
  kill(signal?: NodeJS.Signals): void;
}

export interface InstanceAddress {
  host: string;
  port: number;
}

export interface InstanceUsage {
  /** Cores in use since the last call. */
  cpu: number;
  memoryInBytes: number;
  /** One entry per allocated GPU, in their order. */
  gpus: readonly GpuUsage[];
}

/** Values in per cent. Always 0 for virtual GPUs. */
export interface GpuUsage {
  util: number;
  memoryUtil: number;
}
