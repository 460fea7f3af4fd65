import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { leftOut } from './required-parts.ts';

const BUILD_TIMEOUT_MS = 200_000;
const folder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth', 'go-bin');

export const PEBBLE = { name: 'pebble', module: 'github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1' };

/**
 * A Go program: the one on the path, or the one built earlier from the module proxy into ~/.cache/berth. It
 * is built where `build` is true or `BERTH_BUILD_GO_PROGRAMS=1`; large ones take minutes. Otherwise the
 * reason why it is missing.
 */
export async function goProgram(
  name: string,
  module: string,
  { build = false, timeoutMs = BUILD_TIMEOUT_MS }: { build?: boolean; timeoutMs?: number } = {},
): Promise<{ path: string } | { reason: string }> {
  const found = [...(process.env['PATH'] ?? '').split(':'), folder].map((place) => join(place, name));
  const path = found.find((place) => existsSync(place));
  if (path !== undefined) return { path };
  if (!build && process.env['BERTH_BUILD_GO_PROGRAMS'] !== '1')
    return { reason: leftOut(name, `${name} is not installed; BERTH_BUILD_GO_PROGRAMS=1 builds it`) };
  mkdirSync(folder, { recursive: true });
  try {
    await promisify(execFile)('go', ['install', module], {
      env: { ...process.env, GOBIN: folder },
      timeout: timeoutMs,
    });
    return { path: join(folder, name) };
  } catch (error) {
    const { code, killed, stderr = '' } = error as { code?: unknown; killed?: boolean; stderr?: string };
    const why = killed === true ? `not within ${timeoutMs / 1000} s` : lastLine(stderr);
    const cause = code === 'ENOENT' ? 'Go is not installed' : `it could not be built: ${why}`;
    return { reason: leftOut(name, `${name} is missing: ${cause}`) };
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
