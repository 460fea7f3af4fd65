import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Where the program's own files are. A clone runs from `src/`, beside the other packages; the published
 * package runs compiled from `dist/` and brings its examples along.
 */
const COMPILED = extname(import.meta.url) === '.js';

/** The example workers as people read and copy them. */
export const EXAMPLES = fileAt(COMPILED ? '../../examples' : '../../../../examples');

/**
 * The example workers as the process engine runs them. The published package has them compiled as well:
 * Node strips no types from files below `node_modules`.
 */
export const RUNNABLE_EXAMPLES = COMPILED ? fileAt('../examples') : EXAMPLES;

/** The Python worker SDK, as a folder `berth_worker`. */
export const PYTHON_WORKER_PACKAGE = fileAt(
  COMPILED ? '../berth_worker' : '../../../worker-python/src/berth_worker',
);

/** The built console. */
export const CONSOLE_FILES = fileAt(COMPILED ? '../console' : '../../../console/dist');

/** The documentation: the built site in a package, the Markdown in a clone. */
export const DOCS = COMPILED ? { site: fileAt('../docs') } : { markdown: fileAt('../../../../docs') };

/** The folders with all programs that instances run. They hold no data. */
export const PROGRAM_FOLDERS = COMPILED
  ? [installationFolder(fileAt('../..'))]
  : ['packages', 'examples', 'node_modules'].map((name) => fileAt(`../../../../${name}`));

/** The packages that an installed package needs are beside it, in the outermost `node_modules`. */
function installationFolder(packageFolder: string): string {
  const end = packageFolder.indexOf('/node_modules/');
  return end === -1 ? packageFolder : packageFolder.slice(0, end + '/node_modules'.length);
}

/** The version in the package's description. */
export function programVersion(): string {
  const { version } = JSON.parse(readFileSync(fileAt('../../package.json'), 'utf8')) as { version: string };
  return version;
}

/** The module of the worker SDK that exports `serve`. */
export function workerModule(): string {
  return COMPILED
    ? fileURLToPath(import.meta.resolve('berth-worker'))
    : fileAt('../../../worker/src/worker.ts');
}

/** The version of the installed package. */
export function berthVersion(): string {
  const description = JSON.parse(readFileSync(fileAt('../../package.json'), 'utf8')) as { version: string };
  return description.version;
}

/** A program beside the module `importer`, by its name without extension. */
export function siblingProgram(name: string, importer: string): string {
  return fileURLToPath(new URL(`${name}${extname(importer)}`, importer));
}

function fileAt(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
