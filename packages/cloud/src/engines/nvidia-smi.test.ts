import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findNvidiaGpus, parseCudaVersion, parseGpuList } from './nvidia-smi.ts';

const HEADER = `Sun Nov 15 02:53:26 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
`;

describe('parsing nvidia-smi output', () => {
  test('one line is one GPU', () => {
    assert.deepEqual(
      parseGpuList('NVIDIA H200, 143771, 580.159.04\nNVIDIA GeForce RTX 4090, 24564, 580.159.04\n'),
      [
        { name: 'NVIDIA H200', memoryInMib: 143771, driverVersion: '580.159.04' },
        { name: 'NVIDIA GeForce RTX 4090', memoryInMib: 24564, driverVersion: '580.159.04' },
      ],
    );
  });

  test('Windows line ends and empty text are accepted', () => {
    assert.deepEqual(
      parseGpuList('Tesla T4, 15360, 550.54\r\n').map((gpu) => gpu.driverVersion),
      ['550.54'],
    );
    assert.deepEqual(parseGpuList(''), []);
    assert.deepEqual(parseGpuList('No devices were found\n'), []);
  });

  test('a GPU that shares the memory of the machine has memory 0', () => {
    assert.deepEqual(parseGpuList('NVIDIA GB10, [N/A], 580.95.05\n'), [
      { name: 'NVIDIA GB10', memoryInMib: 0, driverVersion: '580.95.05' },
    ]);
  });

  test('the header names the CUDA version', () => {
    assert.equal(parseCudaVersion(HEADER), '13.0');
    assert.equal(
      parseCudaVersion('| NVIDIA-SMI 418.226.00   Driver Version: 418.226.00   CUDA Version: N/A |'),
      null,
    );
    assert.equal(parseCudaVersion(''), null);
  });
});

describe('running nvidia-smi', {
  skip: process.platform === 'win32' && 'the stand-ins are shell scripts',
}, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-nvidia-smi-'));
  });
  after(() => rm(folder, { recursive: true }));

  async function script(name: string, body: string): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    return path;
  }

  test('finds GPUs and their CUDA version', async () => {
    const command = await script(
      'healthy',
      `if [ $# -gt 0 ]; then echo 'NVIDIA L4, 23034, 550.54.15'; else cat <<'END'\n${HEADER}END\nfi`,
    );
    const gpus = [{ name: 'NVIDIA L4', memoryInMib: 23034, driverVersion: '550.54.15' }];
    assert.deepEqual(await findNvidiaGpus(command), {
      gpus,
      cudaVersion: '13.0',
      problem: null,
      answered: true,
    });
  });

  test('a machine without the command has no GPU and no problem', async () => {
    assert.deepEqual(await findNvidiaGpus(join(folder, 'absent')), {
      gpus: [],
      cudaVersion: null,
      problem: null,
      answered: true,
    });
  });

  test('a failure is reported with the message of the command', async () => {
    const command = await script('failing', 'echo "No devices were found"; exit 6');
    assert.deepEqual(await findNvidiaGpus(command), {
      gpus: [],
      cudaVersion: null,
      problem: 'No devices were found',
      answered: true,
    });
  });

  test('a command that hangs times out', async () => {
    const command = await script('hanging', 'exec sleep 600');
    const findings = await findNvidiaGpus(command, 50);
    assert.deepEqual([findings.gpus, findings.answered], [[], false]);
    assert.match(findings.problem ?? '', /did not answer within 50 ms/);
  });
});
