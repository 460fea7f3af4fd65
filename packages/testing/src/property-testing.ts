import { basename } from 'node:path';
import fc from 'fast-check';

/** Every random choice of a test file follows from this number. `SEED=…` plays a run again. */
export const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

process.stdout.write(`${basename(process.argv[1] ?? '')}: SEED=${seed}\n`);

/** The unit tier tries fewer cases: it answers within a minute, and `npm test` tries them all. */
const SHARE_OF_RUNS = process.env['BERTH_TEST_TIER'] === 'unit' ? 0.25 : 1;

/** Runs a property on the file's seed. */
export function checkProperty<T>(property: fc.IRawProperty<T>, runs = 200): Promise<void> {
  return Promise.resolve(fc.assert(property, { seed, numRuns: casesTried(runs) }));
}

/** How many cases a property tries in this tier, of the number that it asks for. */
export function casesTried(runs: number): number {
  return Math.ceil(runs * SHARE_OF_RUNS);
}

/** Numbers from 0 up to 1 that follow from the seed, for choices that no property makes. */
export function seededNumbers(): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
