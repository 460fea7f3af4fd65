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
import type { EngineKind, EngineCapabilities, Capacity } from '../domain/placement/engine-capacity.ts';

/** A driver with machines under it, as far as one needs to know who only asks what there is. */
export interface Engine {
  readonly kind: EngineKind;

  /** What it has to run things on, less what its instances hold. Rejects with `unavailable` when the engine cannot be reached. */
  capacity(): Promise<Capacity>;
}

/**
 * A driver that runs instances: the containers or processes behind pods and workers.
 *
 * Every action is idempotent by instance id, and nothing here depends on the life of the
 * process that calls it: instances go on when Berth ends, in whatever way, and the next Berth
 * finds them with `list` and `adopt`, with their logs and their exit codes.
 *
 * An id is free again after `remove`. Until then an instance that has ended is still known, and
 * `start` runs it again with a fresh container disk; its log goes on where it was.
 */
export interface InstanceEngine extends Engine {
  readonly capabilities: EngineCapabilities;
  /** The files of its instances, where the driver can get at them. */
  readonly files?: InstanceFiles;

  /** Why it cannot run this image, in words for people; undefined where it can, as far as that is known without trying. */
  imageProblem(image: string): string | undefined;

  /**
   * Resolves when the instance runs. For an id that already runs it resolves with the handle of
   * that one, whatever the rest of the spec says. Rejects with a reason for people: `rule` when
   * it can never run like this, `capacity` when there is no room now, `unavailable` when the
   * engine cannot do it now. Nothing is left behind then.
   */
  start(spec: InstanceSpec): Promise<InstanceHandle>;

  /** The instance behind a saved handle, running or ended; undefined when it is gone, or when its id is that of another one by now. */
  adopt(handle: InstanceHandle): Promise<Instance | undefined>;

  /** Asks it to end, and ends it after the grace period. Resolves when nothing of it runs any more. A second call may shorten the wait of the first. */
  stop(id: string, graceMs: number): Promise<void>;

  /**
   * Stops it, at once if no grace period is given, and forgets it with its container disk. What cannot be cleared away of that is no reason
   * to reject: the engine tries again by itself. Its log stays readable for a set time.
   */
  remove(id: string, graceMs?: number): Promise<void>;

  /** Takes away the log of an instance that was removed. That of one that is still there stays. */
  deleteLog(id: string): Promise<void>;

  /** Every instance of this engine that was not removed. */
  list(): Promise<Instance[]>;

  /** Tells every change from now on. The listener must not throw. Answers the way to stop it. */
  watch(listener: (event: InstanceEvent) => void): () => void;

  /**
   * What it wrote and what was said about it, in the order of the numbers `seq`, everything that
   * was written before the call included. With `follow` it goes on until the instance has ended
   * and all is told. It ends quietly on the signal. Of an unknown instance there is nothing to tell.
   */
  logs(id: string, query?: LogQuery, signal?: AbortSignal): AsyncIterable<LogLine>;

  /** Adds a system line to its log. */
  logSystemLine(id: string, line: string): Promise<void>;

  /** Runs a command beside what it runs: same place, same environment. Ends with the instance at the latest. Rejects with `state` when it does not run. */
  exec(id: string, argv: readonly string[], options?: ExecutionOptions): Promise<Execution>;

  /** Where a declared port can be reached now; undefined while nothing listens there. */
  address(id: string, port: number): Promise<InstanceAddress | undefined>;

  /** What it uses now; undefined when it does not run. */
  usage(id: string): Promise<InstanceUsage | undefined>;

  /** Whether the size of a container disk is a limit here; where this is left out, it is only a number. */
  limitsContainerDisk?(): Promise<boolean>;

  /** Networks that are there already, in the way of 172.17.0.0/16: a new one must keep clear of them. Only where instances have networks of their own. */
  subnetsInUse?(): Promise<string[]>;

  /** Lets go of everything that the engine holds in this process. Instances go on. */
  close(): Promise<void>;
}
