import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { leftOut } from './required-parts.ts';

const BUILD_TIMEOUT_MS = 200_000;
const folder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth', 'go-bin');

export const PEBBLE = { name: 'pebble', module: 'github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1' };
export const COMPOSE = { name: 'docker-compose', module: 'github.com/docker/compose/v2/cmd@v2.40.3' };

export const HELM = { name: 'helm', module: 'helm.sh/helm/v3/cmd/helm@v3.22.0' };
export const ACTIONLINT = {
  name: 'actionlint',
  module: 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
};
export const KUBECONFORM = {
  name: 'kubeconform',
  module: 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0',
};

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
  // In a module of its own: `go install` refuses programs whose module files have exclusions.
  const source = mkdtempSync(join(tmpdir(), 'berth-go-'));
  try {
    const started = performance.now();
    for (const args of [
      ['mod', 'init', 'build'],
      ['get', module],
      ['build', '-o', join(folder, name), module.slice(0, module.lastIndexOf('@'))],
    ])
      await promisify(execFile)('go', args, {
        cwd: source,
        timeout: Math.max(1, Math.ceil(timeoutMs - (performance.now() - started))),
      });
    return { path: join(folder, name) };
  } catch (error) {
    const { code, killed, stderr, message } = error as Error & {
      code?: unknown;
      killed?: boolean;
      stderr?: string;
    };
    const why = killed === true ? `not within ${timeoutMs / 1000} s` : lastLine(stderr || message);
    const cause = code === 'ENOENT' ? 'Go is not installed' : `it could not be built: ${why}`;
    return { reason: leftOut(name, `${name} is missing: ${cause}`) };
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
