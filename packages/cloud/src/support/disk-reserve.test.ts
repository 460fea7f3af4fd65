import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { DiskReserve } from './disk-reserve.ts';

const full = (): Error => Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });

describe('the disk reserve', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-reserve-'));
  after(() => rmSync(folder, { recursive: true }));

  test('takes space, and gives it back slice by slice to what failed', async () => {
    const reserve = new DiskReserve(folder, 875_000);
    await reserve.fill();
    const { size, blocks } = statSync(join(folder, 'reserve'));
    assert.equal(size, 875_000);
    assert.ok(blocks * 512 >= 875_000, 'it has real blocks');
    let failures = 2;
    const done = reserve.use(() => {
      failures -= 1;
      if (failures >= 0) throw full();
      return 'done';
    });
    assert.deepEqual([done, reserve.bytes], ['done', 375_000]);
    assert.deepEqual([reserve.release(250_000), reserve.bytes], [false, 375_000]);
    assert.deepEqual([reserve.release(), reserve.release(), reserve.release()], [true, true, false]);
    assert.throws(() => reserve.use(() => assert.fail(full())), { code: 'ENOSPC' });
    await reserve.fill();
    assert.equal(reserve.bytes, 875_000);
    await new DiskReserve(folder, 0).fill();
    assert.equal(reserve.bytes, 0);
  });
});
