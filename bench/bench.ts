// Measures Berth beside its peers on this machine: `npm run bench -- start|accept|drain|latency|steady|idle|depth|coldstart|gateway|ledger|pods`, without a word all of them.
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { accept } from './accept.ts';
import { coldstart } from './coldstart.ts';
import { depth } from './depth.ts';
import { drain } from './drain.ts';
import { gateway } from './gateway.ts';
import { idle } from './idle.ts';
import { latency } from './latency.ts';
import { ledger } from './ledger.ts';
import { pods } from './pods.ts';
import { start } from './start.ts';
import { steady } from './steady.ts';
import { Bench } from './support/bench.ts';
import { machineNow } from './support/machine.ts';
import { Report } from './support/report.ts';
import { onStage } from './support/stage.ts';
import { findTools, packageVersion, redisVersion, wrkVersion } from './support/tools.ts';

const PARTS: Record<string, (bench: Bench) => Promise<void>> = {
  start,
  accept,
  drain,
  latency,
  steady,
  idle,
  depth,
  coldstart,
  gateway,
  ledger,
  pods,
};
/** Those with the Python worker SDK beside Berth. */
const WITH_PYTHON = ['accept', 'latency'];

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '5' } },
});
const unknown = positionals.find((word) => !Object.hasOwn(PARTS, word));
if (unknown !== undefined) {
  process.stderr.write(`there is no part ${unknown}; the parts are ${Object.keys(PARTS).join(', ')}\n`);
  process.exit(1);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const report = new Report();
const tools = findTools();
const began = Date.now();
await onStage(async (stage) => {
  const bench = new Bench({
    report,
    tools,
    stage,
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
  });
  const packages = ['bullmq', 'ioredis', 'graphile-worker', 'pg-boss', 'fastify'].map(
    (name) => `${name} ${packageVersion(name)}`,
  );
  report.say(
    `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'})`,
  );
  report.say(
    `node ${process.versions.node}, sqlite ${process.versions['sqlite']}, postgres ${(await bench.postgres()).version}, ${packages.join(', ')}`,
  );
  report.say(
    `redis ${tools.redis ? redisVersion() : 'missing'}, wrk ${tools.wrk ? wrkVersion() : 'missing'}`,
  );
  if (positionals.length === 0 || WITH_PYTHON.some((name) => positionals.includes(name))) {
    const python = await bench.pythonSdk();
    report.say(
      'versions' in python
        ? `the Python worker SDK: ${python.versions}`
        : `the Python worker SDK is missing: ${python.reason}`,
    );
  }
  for (const [name, part] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    report.say(`\nbefore ${name}: ${await machineNow()}`);
    try {
      await part(bench);
    } catch (error) {
      // One part that fails must not cost the figures of the others.
      report.say(
        `\n${name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      report.bar({ part: name, what: 'all', bar: '', measured: 'failed', met: undefined });
    }
  }
});
report.end();
report.say(`\n${Math.round((Date.now() - began) / 1000)} s in all`);
process.exit(0);
