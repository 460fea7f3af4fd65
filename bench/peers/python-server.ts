import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { startProgram } from '../support/child-program.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';

const HANDLER = `
import runpod

runpod.serverless.start({"handler": lambda job: {"ok": True}})
`;

/**
 * The local server of the Python worker SDK, with a handler that does nothing. It keeps jobs in memory, runs
 * them when they are asked for, and is gone with them.
 */
export async function startPythonServer(
  scope: CleanupScope,
  python: string,
): Promise<{ url: string; pid: number }> {
  const port = await freePort();
  const handler = join(scope.folder('python'), 'handler.py');
  writeFileSync(handler, HANDLER);
  // It says that it is up on standard error, with everything else; the shell turns both into one.
  const server = await startProgram({
    command: 'sh',
    args: [
      '-c',
      `exec "$0" "$1" --rp_serve_api --rp_api_host 127.0.0.1 --rp_api_port ${port} 2>&1`,
      python,
      handler,
    ],
    env: { UVICORN_LOG_LEVEL: 'info', RUNPOD_LOG_LEVEL: 'ERROR' },
    ready: /Uvicorn running on/,
  });
  scope.defer(server.stop);
  return { url: `http://127.0.0.1:${port}`, pid: server.pid };
}
