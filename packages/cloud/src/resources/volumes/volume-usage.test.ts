import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VolumeUsageMeter } from './volume-usage.ts';

test('concurrent reservations never exceed the capacity', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-usage-'));
  try {
    writeFileSync(join(folder, 'there'), 'x'.repeat(100));
    const usage = new VolumeUsageMeter([folder]);
    const most = (used: number): void => {
      if (used + 300 > 1000) throw new Error(`${used} are used`);
    };
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => usage.reserve(300, most)));
    const promised = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    assert.equal(promised.length, 3);
    await assert.rejects(usage.reserve(300, most), /1000 are used/);
    promised[0]?.(false);
    await usage.reserve(300, most);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
