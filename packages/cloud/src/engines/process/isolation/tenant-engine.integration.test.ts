import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineSuite } from '../../suite/engine.suite.ts';
import { VIRTUAL_GPU } from '../process-test-engine.ts';
import { openEngine } from './tenant-test-engine.ts';

/** A port probe disconnects without reading, so socket errors are ignored. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => " +
  "undefined).end('hello')).listen(Number(process.env.PORT), '127.0.0.1')";

/** Users of their own need root. */
if (process.platform === 'linux' && process.getuid?.() === 0)
  for (const [module, how] of [
    ['tenant-test-engine.ts', 'in namespaces'],
    ['users-test-engine.ts', 'without namespaces'],
  ])
    engineSuite(`the process engine for another account, ${how}`, {
      module: new URL(module ?? '', import.meta.url),
      shellImage: 'local/shell',
      unsupportedImage: 'docker.io/library/alpine:3',
      gpuTypeId: VIRTUAL_GPU.gpuTypeId,
      listenCommand: ['node', '-e', SERVER],
    });

test('a stop right after the start is not lost while the sandbox is made', {
  skip: process.platform !== 'linux' || process.getuid?.() !== 0,
  timeout: 60_000,
}, async () => {
  const data = await mkdtemp(join(tmpdir(), 'berth-stop-'));
  const engine = await openEngine(data);
  try {
    for (let round = 0; round < 5; round += 1) {
      const id = `pod-${round}`;
      await engine.start({
        id,
        labels: {},
        image: 'local/shell',
        command: { entrypoint: ['sleep'], cmd: ['1000'] },
        env: {},
        ports: [],
        mounts: [],
        cpu: 1,
        memoryInGb: 0.5,
        gpus: null,
        containerDiskInGb: 1,
      });
      // Longer than the test may take.
      await engine.stop(id, 600_000);
      const [stopped] = await engine.list();
      assert.equal(stopped?.signal, 'SIGTERM');
      await engine.remove(id);
    }
  } finally {
    await engine.close();
    await rm(data, { recursive: true });
  }
});
