// Measures Berth beside its peers on this machine: `npm run bench --
// start|accept|drain|latency|steady|idle|depth|coldstart|flood|full-disk|gateway|ledger|pods|kubernetes
// |kubernetes-kills|kubernetes-scale|kills|failover|python|console|versions`, without a word all of them.
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { accept } from './accept.bench.ts';
import { coldstart } from './coldstart.bench.ts';
import { webConsole } from './console.bench.ts';
import { depth } from './depth.bench.ts';
import { drain } from './drain.bench.ts';
import { failover } from './failover.bench.ts';
import { flood } from './flood.bench.ts';
import { fullDisk } from './full-disk.bench.ts';
import { gateway } from './gateway.bench.ts';
import { idle } from './idle.bench.ts';
import { kubernetes } from './kubernetes.bench.ts';
import { kubernetesKills } from './kubernetes-kills.bench.ts';
import { kubernetesScale } from './kubernetes-scale.bench.ts';
import { kills } from './kills.bench.ts';
import { latency } from './latency.bench.ts';
import { ledger } from './ledger.bench.ts';
import { pods } from './pods.bench.ts';
import { python } from './python.bench.ts';
import { start } from './start.bench.ts';
import { steady } from './steady.bench.ts';
import { versions } from './versions.bench.ts';
import { BenchContext } from './support/bench-context.ts';
import { machineNow } from './support/machine-load.ts';
import { Report } from './support/bench-report.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { findTools, packageVersion, redisVersion, wrkVersion } from './support/installed-tools.ts';

const BENCHMARKS: Record<string, (bench: BenchContext) => Promise<void>> = {
  start,
  accept,
  drain,
  latency,
  steady,
  idle,
  depth,
  coldstart,
  flood,
  'full-disk': fullDisk,
  gateway,
  ledger,
  pods,
  kubernetes,
  'kubernetes-kills': kubernetesKills,
  'kubernetes-scale': kubernetesScale,
  kills,
  failover,
  python,
  console: webConsole,
  versions,
};
/** Those with the Python worker SDK beside Berth. */
const WITH_PYTHON = ['accept', 'latency', 'coldstart', 'python'];

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '1' },
    scale: { type: 'string', default: '1' },
    other: { type: 'string' },
  },
});
const unknown = positionals.find((word) => !Object.hasOwn(BENCHMARKS, word));
if (unknown !== undefined) {
  process.stderr.write(`there is no part ${unknown}; the parts are ${Object.keys(BENCHMARKS).join(', ')}\n`);
  process.exit(1);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const report = new Report();
const tools = findTools();
const began = Date.now();
await withCleanup(async (scope) => {
  const bench = new BenchContext({
    report,
    tools,
    cleanup: scope,
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    minutes: Number(values.minutes),
    scale: Number(values.scale),
    other: values.other,
  });
  const packages = ['bullmq', 'ioredis', 'graphile-worker', 'pg-boss', 'fastify'].map(
    (name) => `${name} ${packageVersion(name)}`,
  );
  report.print(
    `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'})`,
  );
  report.print(
    `node ${process.versions.node}, sqlite ${process.versions['sqlite']}, postgres ` +
      `${(await bench.postgres()).version}, ${packages.join(', ')}`,
  );
  report.print(
    `redis ${tools.redis ? redisVersion() : 'missing'}, wrk ${tools.wrk ? wrkVersion() : 'missing'}`,
  );
  for (const [name, part] of Object.entries(BENCHMARKS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    report.print(`\nbefore ${name}: ${await machineNow()}`);
    try {
      await part(bench);
    } catch (error) {
      // One part that fails must not cost the figures of the others.
      report.print(
        `\n${name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      report.bar({ part: name, what: 'all', bar: '', measured: 'failed', met: undefined });
    }
  }
  // After the parts: where it is not there yet, it takes minutes to install.
  if (positionals.length === 0 || WITH_PYTHON.some((name) => positionals.includes(name))) {
    const sdk = await bench.pythonSdk();
    report.print(
      'versions' in sdk
        ? `the Python worker SDK: ${sdk.versions}`
        : `the Python worker SDK is missing: ${sdk.reason}`,
    );
  }
});
report.end();
report.print(`\n${Math.round((Date.now() - began) / 1000)} s in all`);
process.exit(0);
