import { spawn } from 'node:child_process';
import type { Environment } from '../support/config/config-from-environment.ts';

/**
 * Opens an address in a browser, on a desktop alone. Without one, the address that was printed can be used.
 */
export function openBrowser(url: string, env: Environment): void {
  const opener = browserCommand(env);
  if (opener === undefined) return;
  const browser = spawn(opener, [url], { stdio: 'ignore', detached: true });
  browser.on('error', () => undefined);
  browser.unref();
}

function browserCommand(env: Environment): string | undefined {
  if (process.platform === 'darwin') return 'open';
  return process.platform === 'linux' && (env['DISPLAY'] || env['WAYLAND_DISPLAY']) ? 'xdg-open' : undefined;
}
