import { allProcesses, environmentOf, type ProcessEntry } from './process-table.ts';

/** How old a look at the machine may be that many share. */
const CACHE_TTL_MS = 250;

interface ProcessSnapshot {
  at: number;
  byRoot: ReadonlyMap<string, readonly ProcessEntry[]>;
  bySession: ReadonlyMap<number, readonly ProcessEntry[]>;
}

let last: ProcessSnapshot | undefined;

/** The living processes of the machine, by the instance that their environment names and by session: one look for all who ask within a moment. */
export function processSnapshot(): ProcessSnapshot {
  const now = performance.now();
  if (last !== undefined && now - last.at < CACHE_TTL_MS) return last;
  const living = allProcesses().filter(({ ended }) => !ended);
  const byRoot = Map.groupBy(living, ({ pid }) => environmentOf(pid)?.['BERTH_ROOT'] ?? '');
  byRoot.delete('');
  last = { at: now, byRoot, bySession: Map.groupBy(living, ({ session }) => session) };
  return last;
}
