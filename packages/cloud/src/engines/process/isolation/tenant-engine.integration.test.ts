import { engineSuite } from '../../suite/engine.suite.ts';
import { VIRTUAL_GPU } from '../process-test-engine.ts';

/** A port probe disconnects without reading, so socket errors are ignored. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => undefined).end('hello')).listen(Number(process.env.PORT), '127.0.0.1')";

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
