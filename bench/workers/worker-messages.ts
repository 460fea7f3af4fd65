/** One worker of one queue, in a process of its own: it gets ready, starts, and stops. */
export interface BenchWorker {
  /** Jobs that it has ended. */
  readonly done: number;
  start(): void;
  stop(): Promise<void>;
}

const ROLES = ['public', 'channel', 'idle', 'bullmq', 'graphile', 'pgboss'] as const;
export type Role = (typeof ROLES)[number];

export interface WorkerOptions {
  /** Berth's address, Redis's port or PostgreSQL's URL, as the role needs. */
  target: string;
  /** The endpoint or the queue. */
  queue: string;
  workerId: string;
  key?: string;
  /** Jobs at a time; for `idle`, how many workers. */
  concurrency: number;
  /** How many of these processes there are. */
  processes: number;
  /** Puts a new job into the queue for each that ends, so that its depth stays. */
  refill?: boolean;
  /** Idle workers also wait for jobs to stop, as the public SDK does. */
  pollsCancellations?: boolean;
}

/** Messages to a worker process. */
export type WorkerCommand =
  | { order: 'prepare'; role: Role; options: WorkerOptions }
  /** `reportsProgress` only where progress is counted: reports disturb what is measured. */
  | { order: 'start'; reportsProgress: boolean }
  | { order: 'stop' };

/** Messages of a worker process. `at` is when the last job ended, in milliseconds since 1970. */
export type WorkerMessage =
  | { note: 'ready' }
  | { note: 'done'; done: number; at: number }
  | { note: 'stopped' }
  | { note: 'failed'; why: string };
