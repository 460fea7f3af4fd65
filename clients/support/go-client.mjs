// A program written in Go, built once from a pinned commit and kept in clients/.installed/.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const INSTALL_LIMIT_MS = 600_000;
const run = promisify(execFile);

/** @param {string} name */
function folderOf(name) {
  return fileURLToPath(new URL(`../.installed/${name}`, import.meta.url));
}

/**
 * @param {string} name
 * @param {string} program
 */
export function goProgram(name, program) {
  return join(folderOf(name), 'bin', program);
}

/**
 * Ends the program with one line on why where it cannot be had.
 * @param {string} name
 * @param {URL} pin a JSON file with the module and the commit
 */
export async function installFromGo(name, pin) {
  const folder = folderOf(name);
  const wanted = readFileSync(pin, 'utf8');
  const ready = join(folder, 'berth-installed.txt');
  if (existsSync(ready) && readFileSync(ready, 'utf8') === wanted) return;
  const { module, commit } = JSON.parse(wanted);
  try {
    mkdirSync(folder, { recursive: true });
    const env = {
      ...process.env,
      GOBIN: join(folder, 'bin'),
      GOPATH: join(folder, 'path'),
      GOFLAGS: '-modcacherw -buildvcs=false',
    };
    await run('go', ['install', `${module}@${commit}`], { cwd: folder, env, timeout: INSTALL_LIMIT_MS });
    writeFileSync(ready, wanted);
  } catch (error) {
    const { stderr = '', message } = /** @type {Error & { stderr?: string }} */ (error);
    const lines = stderr
      .split('\n')
      .map((text) => text.trim())
      .filter((text) => text !== '');
    // Go ends with what the server said, and that is the reason.
    process.stderr.write(
      `go did not install ${module}@${commit.slice(0, 12)}: ${(lines.at(-1) ?? message.split('\n')[0] ?? '').slice(0, 200)}\n`,
    );
    process.exit(1);
  }
}
