import { allProcesses, environmentOf, type ProcessEntry } from './process-table.ts';

/** How old a look at the machine may be that many share. */
const LIFETIME_MS = 250;

interface Glance {
  at: number;
  byRoot: ReadonlyMap<string, readonly ProcessEntry[]>;
  bySession: ReadonlyMap<number, readonly ProcessEntry[]>;
}

let last: Glance | undefined;

/** The living processes of the machine, by the instance that their environment names and by session: one look for all who ask within a moment. */
export function glance(): Glance {
  const now = performance.now();
  if (last !== undefined && now - last.at < LIFETIME_MS) return last;
  const living = allProcesses().filter(({ ended }) => !ended);
  const byRoot = Map.groupBy(living, ({ pid }) => environmentOf(pid)?.['BERTH_ROOT'] ?? '');
  byRoot.delete('');
  last = { at: now, byRoot, bySession: Map.groupBy(living, ({ session }) => session) };
  return last;
}
