import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { repositoryPath } from '../support/repository-path.ts';

const DIST = repositoryPath('packages/console/dist');
const LOADED = new Set(['document', 'script', 'stylesheet', 'image', 'font']);

/** What a browser loads to show the overview for the first time, in KB with gzip; without API answers. */
export async function firstLoadKilobytes(page: Page): Promise<number> {
  const sizes: Promise<number>[] = [];
  page.on('response', (response) => {
    if (LOADED.has(response.request().resourceType())) sizes.push(response.body().then(gzipBytes));
  });
  await page.goto('/');
  await page.getByRole('heading', { name: 'Needs you now' }).waitFor();
  return sum(await Promise.all(sizes)) / 1000;
}

/** The whole console, in KB with gzip. */
export function wholeKilobytes(): number {
  const assets = readdirSync(join(DIST, 'assets')).filter((name) => !/\.(?:gz|br)$/.test(name));
  const files = ['index.html', ...assets.map((name) => join('assets', name))];
  return sum(files.map((file) => gzipBytes(readFileSync(join(DIST, file))))) / 1000;
}

function gzipBytes(content: Buffer): number {
  return gzipSync(content, { level: 9 }).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
