import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { gpuUsageReader, parseGpuUsage, usageOfAllocation } from './gpu-usage.ts';

describe('GPU usage', () => {
  test('parses one line per GPU, and reads missing values as 0', () => {
    const found = parseGpuUsage('0, 37, 12288, 24576\n1, [N/A], [N/A], [N/A]\n3, 100, 81559, 81559\n\n');
    assert.deepEqual(
      [...found],
      [
        [0, { util: 37, memoryUtil: 50 }],
        [1, { util: 0, memoryUtil: 0 }],
        [3, { util: 100, memoryUtil: 100 }],
      ],
    );
  });

  test('returns the allocated GPUs in order, 0 for virtual ones, and caches the reading', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-gpu-'));
    context.after(() => rm(folder, { recursive: true }));
    const [command, calls] = [join(folder, 'nvidia-smi'), join(folder, 'calls')];
    await writeFile(
      command,
      `#!/bin/sh\necho x >>${calls}\nprintf '0, 10, 1, 4\\n1, 20, 2, 4\\n2, 30, 3, 4\\n'\n`,
    );
    await chmod(command, 0o755);
    const clock = new ManualClock();
    const read = gpuUsageReader(command, clock);
    const allocation = { typeId: 'NVIDIA L4', indexes: [2, 0] };
    assert.deepEqual(await usageOfAllocation(allocation, false, read), [
      { util: 30, memoryUtil: 75 },
      { util: 10, memoryUtil: 25 },
    ]);
    await Promise.all(Array.from({ length: 50 }, () => usageOfAllocation(allocation, false, read)));
    assert.equal(await readFile(calls, 'utf8'), 'x\n');
    clock.advance(5_000);
    await usageOfAllocation(allocation, false, read);
    assert.equal(await readFile(calls, 'utf8'), 'x\nx\n');
    assert.deepEqual(await usageOfAllocation(allocation, true, read), [
      { util: 0, memoryUtil: 0 },
      { util: 0, memoryUtil: 0 },
    ]);
    assert.deepEqual(await usageOfAllocation(null, false, read), []);
    assert.deepEqual(await usageOfAllocation(allocation, false, gpuUsageReader(join(folder, 'none'))), [
      { util: 0, memoryUtil: 0 },
      { util: 0, memoryUtil: 0 },
    ]);
  });
});
