import { freePort } from '../../packages/testing/src/free-port.ts';
import { startProgram } from './child-program.ts';
import type { CleanupScope } from './cleanup-scope.ts';

/** Redis that has every write on disk before it answers, as the other queues do. */
export async function startRedis(
  scope: CleanupScope,
  folder: string = scope.folder('redis'),
): Promise<{ port: number; pid: number }> {
  const port = await freePort();
  const program = await startProgram({
    command: 'redis-server',
    args: [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      folder,
      '--appendonly',
      'yes',
      '--appendfsync',
      'always',
      '--save',
      '',
    ],
    ready: /Ready to accept connections/,
  });
  scope.defer(program.stop);
  return { port, pid: program.pid };
}
