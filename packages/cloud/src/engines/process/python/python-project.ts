import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { ruleError } from '../../../support/errors.ts';
import { PYTHON_VERSION, readBerthJson, readIfFile } from '../berth-json.ts';

/** The dependencies that a folder declares. */
export type PythonDependencies =
  | { file: 'requirements.txt' }
  /** `isPackage`: the project itself is installed too, because it can be built. */
  | { file: 'pyproject.toml'; isPackage: boolean };

/** What a folder says about the Python environment that it needs. */
export interface PythonProject {
  folder: string;
  /** Null where only a Python version is asked for. */
  dependencies: PythonDependencies | null;
  /** The version with the file that names it; null for any. */
  version: { wanted: string; source: string } | null;
  /** Files of the folder itself are installed, not only what they name. */
  installsOwnFiles: boolean;
  /** Its own files are installed as links to where they are. */
  isEditable: boolean;
}

const REQUIREMENTS = 'requirements.txt';
const PYPROJECT = 'pyproject.toml';
const VERSION_FILE = '.python-version';
/** `-r other.txt`, `--constraint=other.txt`. */
const INCLUDE = /^\s*(?:-r|-c|--requirement|--constraint)(?:\s+|=|(?=\S))(\S+)/gm;
const EDITABLE = /^\s*(?:-e|--editable)\b/m;
/** A path in the place of a name, a name at a path, or a folder of packages. */
const LOCAL_PATH =
  /^\s*(?:\.{1,2}(?:[/\\[\s;]|$)|[/~]|file:|[\w.-]+\/|(?:-f|--find-links)[\s=]+(?!https?:)\S)|@\s*file:/m;

/**
 * Undefined if the folder needs no environment: it has neither dependencies nor a Python version, or
 * berth.json says `"python": false`. Where both files are there, requirements.txt is used: many projects have
 * a pyproject.toml for their tools alone.
 */
export function readPythonProject(image: string, folder: string): PythonProject | undefined {
  const { python } = readBerthJson(image, folder);
  if (python === false) return undefined;
  const version =
    python === undefined ? versionFromFile(image, folder) : { wanted: python, source: 'berth.json' };
  const requirements = readIfFile(join(folder, REQUIREMENTS));
  if (requirements !== undefined) {
    const text = [requirements, ...includedFiles(folder).map(({ content }) => content)].join('\n');
    const isEditable = EDITABLE.test(text);
    return {
      folder,
      version,
      dependencies: { file: REQUIREMENTS },
      installsOwnFiles: isEditable || LOCAL_PATH.test(text),
      isEditable,
    };
  }
  const pyproject = readIfFile(join(folder, PYPROJECT));
  if (pyproject !== undefined && hasTable(pyproject, 'project')) {
    const isPackage = hasTable(pyproject, 'build-system');
    return {
      folder,
      version,
      dependencies: { file: PYPROJECT, isPackage },
      installsOwnFiles: isPackage,
      isEditable: false,
    };
  }
  return version === null
    ? undefined
    : { folder, version, dependencies: null, installsOwnFiles: false, isEditable: false };
}

/** The files that decide what is installed. */
export async function dependencyFiles({
  folder,
  dependencies,
  installsOwnFiles,
}: PythonProject): Promise<{ path: string; content: Buffer }[]> {
  if (dependencies === null) return [];
  if (!installsOwnFiles)
    return [
      { path: dependencies.file, content: await readFile(join(folder, dependencies.file)) },
      ...includedFiles(folder).map(({ path, content }) => ({ path, content: Buffer.from(content) })),
    ];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
  return Promise.all(paths.map(async (path) => ({ path, content: await readFile(join(folder, path)) })));
}

/**
 * What requirements.txt includes, and what that includes. Files outside of the folder are left to the tool.
 */
function includedFiles(folder: string): { path: string; content: string }[] {
  const found = new Map<string, string>();
  const visit = (path: string): void => {
    const content = readIfFile(join(folder, path));
    if (content === undefined || found.has(path)) return;
    found.set(path, content);
    for (const [, included = ''] of content.matchAll(INCLUDE)) {
      const full = resolve(folder, path, '..', included);
      if (full.startsWith(folder + sep)) visit(relative(folder, full));
    }
  };
  visit(REQUIREMENTS);
  found.delete(REQUIREMENTS);
  return [...found].map(([path, content]) => ({ path, content }));
}

function versionFromFile(image: string, folder: string): PythonProject['version'] {
  const lines = (readIfFile(join(folder, VERSION_FILE)) ?? '').split('\n').map((line) => line.trim());
  const wanted = lines.find((line) => line !== '' && !line.startsWith('#'));
  if (wanted === undefined || wanted === 'system') return null;
  if (!PYTHON_VERSION.test(wanted))
    throw ruleError(
      `${VERSION_FILE} of the image ${JSON.stringify(image)} says ` +
        `${JSON.stringify(wanted.slice(0, 80))}; allowed: a version such as 3.12 or 3.12.4`,
    );
  return { wanted, source: VERSION_FILE };
}

function hasTable(toml: string, name: string): boolean {
  return new RegExp(`^\\s*\\[\\s*${name}\\s*\\]`, 'm').test(toml);
}
