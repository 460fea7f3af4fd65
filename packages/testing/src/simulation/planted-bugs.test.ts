import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

const MAX_SEEDS = 1_000;

describe('a mistake in each layer is found', () => {
  let database: SimulationDatabase;
  before(async () => {
    database = await SimulationDatabase.create();
  });

  for (const { layer, mistake, foundBy = 1, options, plant } of PLANTED_BUGS) {
    test(`${layer}: ${mistake}`, async (context) => {
      const takeOut = plant?.();
      try {
        for (let tried = 0; tried <= MAX_SEEDS; tried += 1) {
          const seed = tried === 0 ? foundBy : tried;
          const { violation } = await simulate({ seed, database, ...options });
          if (violation === undefined) continue;
          context.diagnostic(`seed ${seed}: ${violation.message}`);
          return;
        }
        assert.fail(`not found within ${MAX_SEEDS} seeds`);
      } finally {
        takeOut?.();
      }
    });
  }
});
