/**
 * How often a test repeats something that only chance makes go wrong: a kill, a crash, a race. `npm test`
 * repeats it as often as 15 minutes for everything allow; `npm run test:long` takes its time.
 */
export function repeats<T = number>(count: { usually: T; long: T }): T {
  return process.env['BERTH_TEST_TIER'] === 'long' ? count.long : count.usually;
}

/** Why a test that takes minutes does not run, for its `skip`; undefined in `npm run test:long`. */
export const skipUnlessLong =
  process.env['BERTH_TEST_TIER'] === 'long' ? undefined : 'takes minutes: npm run test:long';
