import { allProcesses, environmentOf, processNamespaceOf, type ProcessEntry } from './process-table.ts';

/** How long one snapshot is shared. */
const CACHE_TTL_MS = 250;

interface ProcessSnapshot {
  at: number;
  byRoot: ReadonlyMap<string, readonly ProcessEntry[]>;
  bySession: ReadonlyMap<number, readonly ProcessEntry[]>;
  byNamespace(): ReadonlyMap<string, readonly ProcessEntry[]>;
}

let last: ProcessSnapshot | undefined;

/**
 * The live processes of this machine, by session and by the instance that their environment names. The result
 * is cached.
 */
export function processSnapshot(): ProcessSnapshot {
  const now = performance.now();
  if (last !== undefined && now - last.at < CACHE_TTL_MS) return last;
  const live = allProcesses().filter(({ ended }) => !ended);
  const byRoot = Map.groupBy(live, ({ pid }) => environmentOf(pid)?.['BERTH_ROOT'] ?? '');
  byRoot.delete('');
  let byNamespace: ReturnType<ProcessSnapshot['byNamespace']> | undefined;
  last = {
    at: now,
    byRoot,
    bySession: Map.groupBy(live, ({ session }) => session),
    byNamespace: () => (byNamespace ??= Map.groupBy(live, ({ pid }) => processNamespaceOf(pid))),
  };
  return last;
}
