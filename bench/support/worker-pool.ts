import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Note, Order, Role, WorkerOptions } from '../workers/session.ts';
import { inRepository } from './paths.ts';
import { keepUntilExit, stopChild } from './program.ts';
import { settle } from './settle.ts';
import type { Stage } from './stage.ts';

export interface CrewOptions extends Omit<WorkerOptions, 'workerId'> {
  role: Role;
  workers: number;
}

export interface DrainOptions extends CrewOptions {
  /** Ends when so many are done, */
  jobs: number;
  /** or after this time. */
  seconds: number;
  /** What the queue itself says has ended, where its workers only know what they have begun to report. */
  ended?: () => Promise<number>;
}

const ASK_EVERY_MS = 5;

interface Hand {
  child: ChildProcess;
  tell(order: Order): void;
  hear: (note: Note) => void;
}

/** Worker processes that are started once and then work for one queue after another. */
export class WorkerPool {
  readonly #hands: Hand[] = [];

  constructor(stage: Stage, size: number) {
    for (let index = 0; index < size; index += 1) {
      const child = fork(inRepository('bench/workers/worker.ts'), {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      const exited = keepUntilExit(child);
      const hand: Hand = { child, tell: (order) => void child.send(order), hear: () => undefined };
      // What cannot be told to a process that is gone is known from its exit.
      child.on('error', (error) => hand.hear({ note: 'failed', why: error.message }));
      child.on('message', (note: Note) => hand.hear(note));
      child.on('exit', (code) => hand.hear({ note: 'failed', why: `a worker process ended with ${code}` }));
      this.#hands.push(hand);
      stage.onEnd(async () => {
        hand.hear = () => undefined;
        await stopChild(child, exited);
      });
    }
  }

  /** Workers that are ready and connected, and do nothing until they are started. */
  async crew({ role, workers, ...options }: CrewOptions): Promise<Crew> {
    const hands = this.#hands.slice(0, workers);
    await Promise.all(
      hands.map((hand, index) =>
        asked(hand, { order: 'prepare', role, options: { ...options, workerId: `bench${index}` } }, 'ready'),
      ),
    );
    return new Crew(hands);
  }

  /** Jobs per second from the moment that all workers are told to start. */
  async drain({ jobs, seconds, ended, ...options }: DrainOptions): Promise<number> {
    const crew = await this.crew(options);
    await settle();
    const rate = await crew.drain(jobs, seconds, ended);
    await crew.stop();
    return rate;
  }
}

export class Crew {
  readonly #hands: readonly Hand[];
  readonly #counts = new Map<Hand, { done: number; at: number }>();

  constructor(hands: readonly Hand[]) {
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
      hand.hear = (note) => {
        if (note.note === 'failed') onFailure(new Error(`a worker failed: ${note.why}`));
        if (note.note !== 'done') return;
        this.#counts.set(hand, note);
        onDone?.();
      };
      hand.tell({ order: 'start', tells: onDone !== undefined });
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#hands.map((hand) => asked(hand, { order: 'stop' }, 'stopped')));
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
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
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

function asked(hand: Hand, order: Order, answer: Note['note']): Promise<void> {
  return new Promise((resolve, reject) => {
    hand.hear = (note) => {
      if (note.note === 'failed') reject(new Error(note.why));
      if (note.note === answer) resolve();
    };
    hand.tell(order);
  });
}
