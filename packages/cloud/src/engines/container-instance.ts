import type { LogLine, LogQuery } from '../domain/log-line.ts';
import type { Execution, ExecutionOptions, Instance, InstanceAddress, InstanceHandle } from './instance.ts';
import type { SegmentedLog } from './logs/segmented-log.ts';

/** One run of an instance in a container, from the moment its container runs. */
export interface ContainerInstance {
  readonly id: string;
  readonly handle: InstanceHandle;
  readonly isRunning: boolean;
  readonly isStopping: boolean;
  describe(): Instance;
  /** Reads the state from the runtime. An ended instance stays ended. */
  refresh(): Promise<void>;
  /** Copies its output to this log from now on. */
  captureOutput(log: SegmentedLog): void;
  /** Completes the log of a run that has ended. */
  finalizeLog(): Promise<void>;
  /** Each call has its own deadline, so a second call with a shorter grace period ends it sooner. */
  stop(graceMs: number): Promise<void>;
  /** Removes the container with its disk, after its log is complete. */
  remove(): Promise<void>;
  logs(query: LogQuery, signal: AbortSignal | undefined): AsyncGenerator<LogLine, void, undefined>;
  logSystemLine(line: string): Promise<void>;
  exec(argv: readonly string[], options: ExecutionOptions): Promise<Execution>;
  address(port: number): Promise<InstanceAddress | undefined>;
  /** Stops managing the instance, which keeps running. */
  detach(): Promise<void>;
}

/** The last lines of the log of an ended instance. */
export function exitMessages({ exitCode, signal }: Instance, causes: readonly string[] = []): string[] {
  if (exitCode === null) return [...causes, 'Ended; exit code unknown.'];
  return [...causes, `Ended with exit code ${exitCode}${signal === null ? '' : ` (${signal})`}.`];
}
