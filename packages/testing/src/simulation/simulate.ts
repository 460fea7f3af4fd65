import { parseArgs } from 'node:util';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';
import { PostgresSimulationDatabase } from './postgres-simulation-database.ts';
import { startTestPostgres } from '../postgres-server.mjs';
import { processorTime } from './virtual-time.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string' },
    minutes: { type: 'string' },
    length: { type: 'string', default: '20' },
    store: { type: 'string', default: 'sqlite' },
    trace: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);

if (values.help) {
  print(`npm run simulate -- [--seed N] [--count K] [--minutes M] [--length SECONDS]
  [--store sqlite|postgres] [--trace] [--keep]

Runs the queue, the reconcilers, the webhooks, the ledger and the clocks against crashes and other faults, in virtual time.
  --seed N     the first seed (default: 1)
  --count K    how many seeds (default: one; with --minutes as many as fit)
  --minutes M  how long to go on
  --length S   virtual seconds with load and faults in each run (default: 20)
  --store S    sqlite, in memory (default), or a real PostgreSQL, ten times slower
  --trace      prints all that happened, not only what concerns the violation
  --keep       goes on after a seed that fails`);
  process.exit(0);
}

const first = Number(values.seed);
const until = values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000;
const count =
  values.count === undefined ? (values.minutes === undefined ? 1 : Infinity) : Number(values.count);
const postgres = values.store === 'postgres' ? await startTestPostgres() : undefined;
if (postgres !== undefined) process.env['BERTH_TEST_DATABASE_URL'] = postgres.url;
const database = await (postgres === undefined ? SimulationDatabase : PostgresSimulationDatabase).create();
let failures = 0;
let done = 0;
const began = processorTime();
for (let seed = first; seed < first + count && performance.now() < until; seed += 1) {
  const { violation, trace, jobs, instances, steps, servers, shards, hash } = await simulate({
    seed,
    database,
    traceAll: values.trace,
    milliseconds: Number(values.length) * 1000,
  });
  done += 1;
  if (count === 1)
    print(
      `${servers} servers, ${shards} shards, ${jobs} jobs, ${instances} instances, ${steps} steps, trace ${hash}`,
    );
  if (violation !== undefined) print(`seed ${seed}: ${violation.message} (${violation.about})`);
  for (const line of trace) print(line);
  if (violation === undefined) continue;
  failures += 1;
  if (!values.keep) break;
}
print(
  `${done} seeds, ${failures} failed; ${Math.round((processorTime() - began) / Math.max(1, done))} ms ` +
    'of processor time each',
);
process.exitCode = failures > 0 ? 1 : 0;
await database.close();
await postgres?.stop();
