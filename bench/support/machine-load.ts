import { readFileSync } from 'node:fs';
import { syncCost } from './disk-sync-cost.ts';

const SAMPLE_MS = 1_000;

/** How the machine is before anything is measured: what others do on it explains figures that differ. */
export async function machineNow(): Promise<string> {
  const idle = await idleShare(SAMPLE_MS);
  const { median, p99 } = await syncCost();
  return (
    `processors ${(idle * 100).toFixed(0)} % idle, fsync of a page: median ${median.toFixed(0)} µs, ` +
    `p99 ${p99.toFixed(0)} µs`
  );
}

/** The idle share of the CPUs over this time. */
export async function idleShare(milliseconds: number): Promise<number> {
  const before = processorTimes();
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const after = processorTimes();
  return (after.idle - before.idle) / (after.all - before.all);
}

function processorTimes(): { idle: number; all: number } {
  const [, ...times] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/);
  return { idle: Number(times[3]), all: times.reduce((sum, time) => sum + Number(time), 0) };
}
