// A client from npm, installed once into a folder of its own and kept in clients/.installed/.
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const INSTALL_LIMIT_MS = 600_000;
const run = promisify(execFile);

/**
 * A file of an installed client.
 * @param {string} name
 * @param {string} file below its node_modules
 */
export function npmFile(name, file) {
  return fileURLToPath(new URL(`../.installed/${name}/node_modules/${file}`, import.meta.url));
}

/**
 * Ends the program with one line on why where it cannot be had.
 * @param {string} name
 * @param {URL} manifest a package.json with exact versions
 */
export async function installFromNpm(name, manifest) {
  const folder = fileURLToPath(new URL(`../.installed/${name}`, import.meta.url));
  const wanted = readFileSync(manifest, 'utf8');
  const ready = join(folder, 'berth-installed.txt');
  if (existsSync(ready) && readFileSync(ready, 'utf8') === wanted) return;
  try {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    copyFileSync(fileURLToPath(manifest), join(folder, 'package.json'));
    await run(
      'npm',
      ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'],
      { cwd: folder, timeout: INSTALL_LIMIT_MS },
    );
    writeFileSync(ready, wanted);
  } catch (error) {
    const { stderr = '', message } = /** @type {Error & { stderr?: string }} */ (error);
    const line = stderr.split('\n').filter((text) => text.trim() !== '')[0] ?? message.split('\n')[0];
    process.stderr.write(
      `npm did not install ${Object.entries(JSON.parse(wanted).dependencies)
        .map((pair) => pair.join('@'))
        .join(', ')}: ${line?.slice(0, 200)}\n`,
    );
    process.exit(1);
  }
}
