import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';

const CHROMIUM = process.env['BERTH_CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const BUILD = fileURLToPath(new URL('../../../scripts/build-console.mjs', import.meta.url));

/** Why no browser can be started; undefined if one can. */
export function missingBrowser(): string | undefined {
  if (existsSync(CHROMIUM)) return undefined;
  return `there is no browser at ${CHROMIUM}; install Debian's package chromium, or set BERTH_CHROMIUM`;
}

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

let isBuilt = false;

/** Builds the console unless it was built from the same sources. */
export function buildConsole(): void {
  if (isBuilt) return;
  isBuilt = true;
  execFileSync(process.execPath, [BUILD], { stdio: 'ignore' });
}
