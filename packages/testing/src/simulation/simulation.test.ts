import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

/** `npm run simulate` runs more of them. */
const SEEDS = Number(process.env['BERTH_SIMULATION_SEEDS'] ?? 1_000);
const FIRST_SEED = Number(process.env['SEED'] ?? 1);

let database: SimulationDatabase;
before(async () => {
  database = await SimulationDatabase.create();
});

test(`${SEEDS} seeds keep every rule`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    const { violation, trace } = await simulate({ seed, database });
    assert.equal(
      violation,
      undefined,
      `seed ${seed} (npm run simulate -- --seed ${seed}): ${violation?.message}\n${trace.join('\n')}`,
    );
  }
});

test('the same seed gives the same run', async () => {
  for (const seed of [3, 9]) {
    const [one, other] = [await simulate({ seed, database }), await simulate({ seed, database })];
    assert.deepEqual(one, other);
    assert.ok(one.jobs > 0 && one.steps > 100);
  }
});
