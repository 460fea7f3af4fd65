import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';

/** The browser that people have. */
const WHOLE_CHROMIUM = '/usr/bin/chromium';
/** Chromium without windows, in two thirds of the processor time. It draws letters a little differently. */
const HEADLESS_SHELL = '/usr/lib/chromium/chromium-headless-shell';
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

export interface BrowserOptions {
  /** The one that people have. */
  isWhole?: boolean;
}

function programOf(isWhole: boolean): string {
  const named = process.env['BERTH_CHROMIUM'];
  if (named !== undefined) return named;
  return !isWhole && existsSync(HEADLESS_SHELL) ? HEADLESS_SHELL : WHOLE_CHROMIUM;
}

/** Why no browser can be started; undefined if one can. */
export function missingBrowser({ isWhole = false }: BrowserOptions = {}): string | undefined {
  const program = programOf(isWhole);
  if (existsSync(program)) return undefined;
  const wanted = isWhole ? 'chromium' : 'chromium-headless-shell or chromium';
  return `there is no browser at ${program}; install Debian's package ${wanted}, or set BERTH_CHROMIUM`;
}

/** The browser of the tests; where pictures are compared or people's waiting is measured, the whole one. */
export function launchChromium({ isWhole = false }: BrowserOptions = {}): Promise<Browser> {
  return chromium.launch({ executablePath: programOf(isWhole), args: FLAGS });
}

let isBuilt = false;

/** Builds the console unless it was built from the same sources. */
export function buildConsole(): void {
  if (isBuilt) return;
  isBuilt = true;
  execFileSync(process.execPath, [BUILD], { stdio: 'ignore' });
}
