import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const BUILD_TIMEOUT_MS = 200_000;
const folder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth', 'go-bin');

/**
 * A Go program, built once from the module proxy into ~/.cache/berth. Where that is not possible, the reason why;
 * `BERTH_REQUIRE_GO_PROGRAMS=1` makes it a failure.
 */
export async function goProgram(
  name: string,
  module: string,
): Promise<{ path: string } | { reason: string }> {
  const path = join(folder, name);
  if (existsSync(path)) return { path };
  mkdirSync(folder, { recursive: true });
  try {
    await promisify(execFile)('go', ['install', module], {
      env: { ...process.env, GOBIN: folder },
      timeout: BUILD_TIMEOUT_MS,
    });
    return { path };
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    const reason = code === 'ENOENT' ? 'Go is not installed' : `it could not be built: ${lastLine(stderr)}`;
    if (process.env['BERTH_REQUIRE_GO_PROGRAMS'] === '1')
      throw new Error(`${name}: ${reason}`, { cause: error });
    return { reason: `${name} is missing: ${reason}` };
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
