import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { withCleanup } from './cleanup-scope.ts';
import { quantile } from './statistics.ts';

const PAGE = Buffer.alloc(4096);
const SYNCS = 300;

/**
 * What it costs to bring one page to this disk, in microseconds. Every durable queue pays it once for each
 * commit.
 */
export function syncCost(): Promise<{ median: number; p99: number }> {
  return withCleanup(async (scope) => {
    const file = openSync(join(scope.folder('disk'), 'page'), 'w');
    const costs: number[] = [];
    for (let count = 0; count < SYNCS; count += 1) {
      writeSync(file, PAGE);
      const before = performance.now();
      fsyncSync(file);
      costs.push((performance.now() - before) * 1000);
    }
    closeSync(file);
    return { median: quantile(costs, 0.5), p99: quantile(costs, 0.99) };
  });
}
