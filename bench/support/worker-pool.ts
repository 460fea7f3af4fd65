import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { WorkerMessage, WorkerCommand, Role, WorkerOptions } from '../workers/worker-messages.ts';
import { repositoryPath } from './repository-path.ts';
import { killOnExit, stopChild } from './child-program.ts';
import { waitUntilIdle } from './wait-until-idle.ts';
import type { CleanupScope } from './cleanup-scope.ts';

export interface WorkerGroupOptions extends Omit<WorkerOptions, 'workerId' | 'processes'> {
  role: Role;
  workers: number;
}

export interface DrainOptions extends WorkerGroupOptions {
  /** Ends when so many are done, */
  jobs: number;
  /** or after this time. */
  seconds: number;
  /** What the queue itself says has ended, where its workers only know what they have begun to report. */
  ended?: () => Promise<number>;
}

const POLL_INTERVAL_MS = 5;

interface WorkerHandle {
  child: ChildProcess;
  send(order: WorkerCommand): void;
  onMessage: (note: WorkerMessage) => void;
}

/** Worker processes that are started once and then work for one queue after another. */
export class WorkerPool {
  readonly #hands: WorkerHandle[] = [];

  constructor(scope: CleanupScope, size: number) {
    for (let index = 0; index < size; index += 1) {
      const child = fork(repositoryPath('bench/workers/worker-main.ts'), {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      const exited = killOnExit(child);
      const hand: WorkerHandle = {
        child,
        send: (order) => void child.send(order),
        onMessage: () => undefined,
      };
      // What cannot be told to a process that is gone is known from its exit.
      child.on('error', (error) => hand.onMessage({ note: 'failed', why: error.message }));
      child.on('message', (note: WorkerMessage) => hand.onMessage(note));
      child.on('exit', (code) =>
        hand.onMessage({ note: 'failed', why: `a worker process ended with ${code}` }),
      );
      this.#hands.push(hand);
      scope.defer(async () => {
        hand.onMessage = () => undefined;
        await stopChild(child, exited);
      });
    }
  }

  /** Workers that are ready and connected, and do nothing until they are started. */
  async prepare({ role, workers, ...options }: WorkerGroupOptions): Promise<WorkerGroup> {
    const hands = this.#hands.slice(0, workers);
    await Promise.all(
      hands.map((hand, index) =>
        sendAndWait(
          hand,
          { order: 'prepare', role, options: { ...options, workerId: `bench${index}`, processes: workers } },
          'ready',
        ),
      ),
    );
    return new WorkerGroup(hands);
  }

  /** Jobs per second from the moment at which all workers start. */
  async drain({ jobs, seconds, ended, ...options }: DrainOptions): Promise<number> {
    const pool = await this.prepare(options);
    await waitUntilIdle();
    const rate = await pool.drain(jobs, seconds, ended);
    await pool.stop();
    return rate;
  }
}

class WorkerGroup {
  readonly #hands: readonly WorkerHandle[];
  readonly #counts = new Map<WorkerHandle, { done: number; at: number }>();

  constructor(hands: readonly WorkerHandle[]) {
    this.#hands = hands;
  }

  /** Jobs that all of them have ended. */
  get done(): number {
    let sum = 0;
    for (const { done } of this.#counts.values()) sum += done;
    return sum;
  }

  /** `onDone` hears each time that they have ended more. */
  start(onDone?: () => void, onFailure: (error: Error) => void = fail): void {
    for (const hand of this.#hands) {
      hand.onMessage = (note) => {
        if (note.note === 'failed') onFailure(new Error(`a worker failed: ${note.why}`));
        if (note.note !== 'done') return;
        this.#counts.set(hand, note);
        onDone?.();
      };
      hand.send({ order: 'start', reportsProgress: onDone !== undefined });
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#hands.map((hand) => sendAndWait(hand, { order: 'stop' }, 'stopped')));
  }

  /** Jobs per second until the workers have ended so many of them, or for so long. */
  async drain(jobs: number, seconds: number, ended?: () => Promise<number>): Promise<number> {
    const began = now();
    const deadline = began + seconds * 1000;
    const finished = await new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => resolve(deadline), seconds * 1000);
      this.start(() => {
        if (this.done < jobs) return;
        clearTimeout(timer);
        resolve(Math.max(...[...this.#counts.values()].map(({ at }) => at)));
      }, reject);
    });
    if (ended === undefined) return perSecond(this.done, finished - began);
    for (;;) {
      const count = await ended();
      if (count >= jobs || now() >= deadline) return perSecond(count, now() - began);
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

function perSecond(count: number, milliseconds: number): number {
  return (count / milliseconds) * 1000;
}

function fail(error: Error): never {
  throw error;
}

function sendAndWait(hand: WorkerHandle, order: WorkerCommand, answer: WorkerMessage['note']): Promise<void> {
  return new Promise((resolve, reject) => {
    hand.onMessage = (note) => {
      if (note.note === 'failed') reject(new Error(note.why));
      if (note.note === answer) resolve();
    };
    hand.send(order);
  });
}
