// A virtual environment of one client, made once and kept in clients/.installed/.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const INSTALL_LIMIT_MS = 600_000;
const run = promisify(execFile);

/** @param {string} name */
export function pythonEnvironment(name) {
  return fileURLToPath(new URL(`../.installed/${name}`, import.meta.url));
}

/**
 * Makes the environment where it is not there yet, and answers in one line why it cannot be made.
 * @param {string} name
 * @param {URL} requirements what it holds, with exact versions
 * @returns {Promise<string | undefined>}
 */
export async function preparePython(name, requirements) {
  const folder = pythonEnvironment(name);
  const wanted = readFileSync(requirements, 'utf8');
  const ready = join(folder, 'berth-installed.txt');
  if (existsSync(ready) && readFileSync(ready, 'utf8') === wanted) return undefined;
  try {
    await run('python3', ['-m', 'venv', '--clear', folder], { timeout: INSTALL_LIMIT_MS });
    await run(
      join(folder, 'bin/python'),
      [
        '-m',
        'pip',
        'install',
        '--quiet',
        '--no-compile',
        '--disable-pip-version-check',
        '--requirement',
        fileURLToPath(requirements),
      ],
      { timeout: INSTALL_LIMIT_MS },
    );
    writeFileSync(ready, wanted);
    return undefined;
  } catch (error) {
    const { stderr = '', message } = /** @type {Error & { stderr?: string }} */ (error);
    const line =
      stderr
        .split('\n')
        .filter((text) => text.trim() !== '')
        .at(-1) ?? message.split('\n')[0];
    return `no Python with ${wanted.trim().replaceAll('\n', ', ')}: ${line?.slice(0, 200)}`;
  }
}

/**
 * Ends the program with one line on why where it cannot be made.
 * @param {string} name
 * @param {URL} requirements
 */
export async function installPython(name, requirements) {
  const reason = await preparePython(name, requirements);
  if (reason === undefined) return;
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}
