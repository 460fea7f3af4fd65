import type { JobStore } from '../../../cloud/src/store/job-store.ts';
import { BerthError } from '../../../cloud/src/support/errors.ts';
import type { SeededRandom } from './seeded-random.ts';

/** How likely a call is to fail: before it does anything, or after it has taken effect. */
export interface FaultProbabilities {
  before: number;
  after: number;
}

export interface FaultyJobStore {
  store: JobStore;
  /** From now on calls fail by these odds. At first none does. */
  setProbabilities(odds: FaultProbabilities): void;
  /** Calls that were made to fail, by method. */
  faults(): Record<string, FaultProbabilities>;
}

/** A store whose next call can be made to fail after it has taken effect. */
export function failOnceJobStore(store: JobStore): { store: JobStore; failNext(name: keyof JobStore): void } {
  let next: keyof JobStore | undefined;
  const failing = new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...given: unknown[]): Promise<unknown> => {
        const fails = name === next;
        if (fails) next = undefined;
        const answer: unknown = await Reflect.apply(method, target, given);
        if (fails) throw new BerthError('unavailable', `${String(name)} failed after it took effect`);
        return answer;
      };
    },
  });
  return {
    store: failing,
    failNext: (name) => {
      next = name;
    },
  };
}

/**
 * A store whose every call may fail. It wraps whatever the store has, so a method that is added later fails
 * like the others.
 */
export function faultyJobStore(store: JobStore, chance: SeededRandom): FaultyJobStore {
  const faults: Record<string, FaultProbabilities> = {};
  let odds: FaultProbabilities = { before: 0, after: 0 };
  const failed = (name: string, when: keyof FaultProbabilities): never => {
    const counted = (faults[name] ??= { before: 0, after: 0 });
    counted[when] += 1;
    // A store is away, or something in it breaks: callers have to handle both.
    throw chance.chance(0.5)
      ? new BerthError('unavailable', `${name} failed ${when} it took effect`)
      : new Error(`${name} failed ${when} it took effect`);
  };
  const faulty = new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return async (...given: unknown[]): Promise<unknown> => {
        if (chance.chance(odds.before)) failed(String(name), 'before');
        const answer: unknown = await Reflect.apply(method, target, given);
        if (chance.chance(odds.after)) failed(String(name), 'after');
        return answer;
      };
    },
  });
  return {
    store: faulty,
    setProbabilities: (now) => {
      odds = now;
    },
    faults: () => faults,
  };
}
