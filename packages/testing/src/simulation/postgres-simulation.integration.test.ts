import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PostgresSimulationDatabase } from './postgres-simulation-database.ts';
import { simulate } from './simulation.ts';

/** `npm run simulate -- --store postgres` runs more of them, and longer ones. */
const SEEDS = Number(process.env['BERTH_SIMULATION_POSTGRES_SEEDS'] ?? 20);
const LOAD_MS = 8_000;

let database: PostgresSimulationDatabase;
before(async () => {
  database = await PostgresSimulationDatabase.create();
});
after(() => database.close());

test(`${SEEDS} seeds keep every rule on PostgreSQL`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation, trace, jobs } = await simulate({ seed, database, milliseconds: LOAD_MS });
    assert.equal(violation, undefined, `seed ${seed}: ${violation?.message}\n${trace.join('\n')}`);
    assert.ok(jobs > 0);
  }
});
