// A program written in Go, built once and kept in clients/.installed/: from a pinned commit of its module, or
// from an archive of its source.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
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
  const { module, commit } = JSON.parse(readFileSync(pin, 'utf8'));
  await installOnce(name, `${module}@${commit}`, async (folder) => {
    await go(folder, folder, 'install', `${module}@${commit}`);
  });
}

/**
 * Builds the program of a source archive (tar, compressed or not). Ends the program with one line on why where it
 * cannot be built.
 * @param {string} name
 * @param {string} program
 * @param {string} archive
 */
export async function installFromGoSource(name, program, archive) {
  const file = resolve(archive);
  if (!existsSync(file)) fail(`there is no archive ${file}`);
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
  await installOnce(name, `source ${digest}`, async (folder) => {
    const source = join(folder, 'source');
    rmSync(source, { recursive: true, force: true });
    mkdirSync(source);
    await run('tar', ['-xf', file, '-C', source]);
    try {
      await go(folder, source, 'build', '-o', join(folder, 'bin', program), '.');
    } catch (error) {
      await failIfTooOld(program, source);
      throw error;
    }
  });
}

/**
 * Go before 1.21 cannot say that it is too old: it does not understand newer versions.
 * @param {string} program
 * @param {string} source
 */
async function failIfTooOld(program, source) {
  const wanted = /^go (\S+)$/m.exec(readFileSync(join(source, 'go.mod'), 'utf8'))?.[1] ?? '0';
  const { stdout } = await run('go', ['env', 'GOVERSION'], { cwd: '/' });
  const found = stdout.trim().replace('go', '');
  if (found.localeCompare(wanted, 'en', { numeric: true }) < 0)
    fail(`${program} needs Go ${wanted} or newer; ${found} is installed`);
}

/**
 * @param {string} name
 * @param {string} version what is wanted; where it is already installed, nothing is done
 * @param {(folder: string) => Promise<void>} install
 */
async function installOnce(name, version, install) {
  const folder = folderOf(name);
  const ready = join(folder, 'berth-installed.txt');
  if (existsSync(ready) && readFileSync(ready, 'utf8') === version) return;
  try {
    mkdirSync(folder, { recursive: true });
    await install(folder);
    writeFileSync(ready, version);
  } catch (error) {
    const { stderr = '', message } = /** @type {Error & { stderr?: string }} */ (error);
    const lines = stderr
      .split('\n')
      .map((text) => text.trim())
      .filter((text) => text !== '');
    // Go ends with what the server said, and that is the reason.
    fail(
      `go did not install ${version.slice(0, 60)}: ${(lines.at(-1) ?? message.split('\n')[0] ?? '').slice(0, 200)}`,
    );
  }
}

/**
 * @param {string} folder
 * @param {string} cwd
 * @param {string[]} args
 */
async function go(folder, cwd, ...args) {
  const env = {
    ...process.env,
    CGO_ENABLED: '0',
    GOBIN: join(folder, 'bin'),
    GOPATH: join(folder, 'path'),
    GOFLAGS: '-modcacherw -buildvcs=false',
  };
  await run('go', args, { cwd, env, timeout: INSTALL_LIMIT_MS });
}

/** @param {string} reason @returns {never} */
function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}
