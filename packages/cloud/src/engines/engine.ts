import type { EngineVolumes } from './engine-volumes.ts';
import type { InstanceFiles } from './instance-files.ts';
import type {
  InstanceAddress,
  Execution,
  ExecutionOptions,
  Instance,
  InstanceEvent,
  InstanceHandle,
  InstanceSpec,
  InstanceUsage,
} from './instance.ts';
import type { LogLine, LogQuery } from '../domain/log-line.ts';
import type {
  AccountIsolation,
  EngineKind,
  EngineCapabilities,
  Capacity,
} from '../domain/placement/engine-capacity.ts';

/** The read-only side of a driver: its kind and its capacity. */
export interface Engine {
  readonly kind: EngineKind;

  /**
   * Its resources, without what its instances hold. Rejects with `unavailable` when the engine cannot be
   * reached.
   */
  capacity(): Promise<Capacity>;

  /** How it keeps the instances of accounts apart. */
  isolation?(): Promise<AccountIsolation>;

  /** The API that it works through, where that is not on this machine. */
  connection?(): EngineConnection;
}

export interface EngineConnection {
  /** Requests since the start. */
  requests: number;
  /** How old what is known of its instances may be, in milliseconds; undefined before the first answer. */
  cacheAgeMs: number | undefined;
}

/**
 * A driver that runs instances: the containers or processes behind pods and workers.
 * Every action is idempotent by instance id, and no instance depends on the calling process: instances
 * survive the end or crash of Berth, and the next Berth process finds them with `list` and `adopt`, with
 * their logs and exit codes.
 * An id is free again after `remove`. Until then an ended instance is still known, and `start` runs it again
 * with a fresh container disk; its log continues.
 */
export interface InstanceEngine extends Engine {
  readonly capabilities: EngineCapabilities;
  /** The files of its instances, if the driver can access them. */
  readonly files?: InstanceFiles;
  /** The volumes that it keeps by itself. Without it, volumes are folders of this machine. */
  readonly volumes?: EngineVolumes;

  /**
   * Why it cannot run this image, as a message for users; undefined if it can, as far as is known without
   * trying.
   */
  imageProblem(image: string): string | undefined;

  /**
   * Why the image cannot be found, neither here nor at its registry with these credentials; undefined if it
   * can, or if that cannot be told now.
   */
  imageLookupProblem?(image: string, registry: InstanceSpec['registry']): Promise<string | undefined>;

  /**
   * Deletes images that it fetched itself, and environments that it made, if they are not among these and
   * nothing was started from them since this time; answers which.
   */
  pruneImages?(unusedSince: number, inUse: ReadonlySet<string>): Promise<string[]>;

  /**
   * Begins what the first start of an image would wait for, such as its Python environment. What fails here
   * is reported by that start.
   */
  prepareImage?(image: string, accountId: string): void;

  /**
   * Why it cannot run anything for this account, as a message for users; undefined if it can, as far as is
   * known without trying.
   */
  accountProblem?(accountId: string): string | undefined;

  /**
   * Resolves when the instance runs. If the id already runs, it resolves with the handle of that instance and
   * ignores the rest of the spec. Rejects with a message for users: `rule` when it can never run like this,
   * `capacity` when there is no room now, `unavailable` when the engine cannot do it now. Nothing is left
   * behind then.
   */
  start(spec: InstanceSpec): Promise<InstanceHandle>;

  /**
   * The instance of a saved handle, running or ended; undefined when it is gone or its id belongs to another
   * one.
   */
  adopt(handle: InstanceHandle): Promise<Instance | undefined>;

  /**
   * An instance of another machine, by its id alone: its handle was not stored yet. Only for engines of
   * several machines, which cannot list those that do not answer.
   */
  findElsewhere?(id: string): Promise<Instance | undefined>;

  /**
   * Asks the instance to end and kills it after the grace period. Resolves when no process of it is left. A
   * second call may shorten the grace period.
   */
  stop(id: string, graceMs: number): Promise<void>;

  /**
   * Stops the instance, at once without a grace period, and deletes it with its container disk. Files that
   * cannot be deleted do not make it reject: the engine tries again later. The log stays readable for the
   * retention time.
   */
  remove(id: string, graceMs?: number): Promise<void>;

  /** Deletes the log of a removed instance. The log of an existing instance stays. */
  deleteLog(id: string): Promise<void>;

  /** All instances of this engine that were not removed. */
  list(): Promise<Instance[]>;

  /** The same from what it has watched, where a list is expensive; undefined while that may be old. */
  watched?(): Promise<Instance[]> | undefined;

  /**
   * Calls the listener on every change from now on. It must not throw. Returns a function that unsubscribes.
   */
  watch(listener: (event: InstanceEvent) => void): () => void;

  /**
   * The output and the system lines in the order of `seq`, including everything written before the call. With
   * `follow` it continues until the instance has ended and all lines are read. It ends without an error on
   * the signal. An unknown instance has no lines.
   */
  logs(id: string, query?: LogQuery, signal?: AbortSignal): AsyncIterable<LogLine>;

  /** Adds a system line to its log. */
  logSystemLine(id: string, line: string): Promise<void>;

  /**
   * Runs a command in the instance, with the same files and environment. It ends with the instance at the
   * latest. Rejects with `state` when the instance does not run.
   */
  exec(id: string, argv: readonly string[], options?: ExecutionOptions): Promise<Execution>;

  /** The address of a declared port; undefined while nothing listens there. */
  address(id: string, port: number): Promise<InstanceAddress | undefined>;

  /** Its current resource usage; undefined when it does not run. */
  usage(id: string): Promise<InstanceUsage | undefined>;

  /** Whether the size of a container disk is enforced. Without this method it is not. */
  limitsContainerDisk?(): Promise<boolean>;

  /**
   * Existing subnets, such as 172.17.0.0/16, which a new network must not overlap. Only for engines whose
   * instances have networks.
   */
  subnetsInUse?(): Promise<string[]>;

  /** Releases what the engine holds in this process. Instances keep running. */
  close(): Promise<void>;
}
