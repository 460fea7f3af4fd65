import { readFileSync } from 'node:fs';
import { syncCost } from './disk.ts';

const LOOK_MS = 1_000;

/** How the machine is before anything is measured: what others do on it explains figures that differ. */
export async function machineNow(): Promise<string> {
  const before = processorTimes();
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  const after = processorTimes();
  const idle = (after.idle - before.idle) / (after.all - before.all);
  const { median, p99 } = await syncCost();
  return `processors ${(idle * 100).toFixed(0)} % idle, fsync of a page: median ${median.toFixed(0)} µs, p99 ${p99.toFixed(0)} µs`;
}

function processorTimes(): { idle: number; all: number } {
  const [, ...times] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/);
  return { idle: Number(times[3]), all: times.reduce((sum, time) => sum + Number(time), 0) };
}
