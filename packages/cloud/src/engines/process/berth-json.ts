import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BerthError, ruleError } from '../../support/errors.ts';

/** What a folder says about how it runs; docs/berth-json.md describes every key. */
export interface BerthJson {
  /** Runs instead of the handler file. */
  command?: readonly string[];
  /** The Python version, such as `3.12` or `3.12.4`; false: no Python environment is made. */
  python?: string | false;
}

export const PYTHON_VERSION = /^\d+\.\d+(?:\.\d+)?$/;

/** Keys that are not known are ignored: a later version may know them. */
export function readBerthJson(image: string, folder: string): BerthJson {
  const problem = (what: string): BerthError =>
    ruleError(`berth.json of the image ${JSON.stringify(image)} ${what}`);
  const text = readIfFile(join(folder, 'berth.json'));
  if (text === undefined) return {};
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw problem('is not JSON');
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw problem('is not an object such as {"command": ["node", "server.js"]}');
  const { command, python } = content as Record<string, unknown>;
  if (command !== undefined && !isCommand(command))
    throw problem('has a "command" that is not a list of words');
  if (python !== undefined && python !== false && !isVersion(python))
    throw problem(
      `has ${JSON.stringify(python)} as "python"; allowed: a version in quotes such as "3.12", or false`,
    );
  return { ...(command !== undefined && { command }), ...(python !== undefined && { python }) };
}

/** Undefined if there is no such file. */
export function readIfFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'EISDIR', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined;
    throw error;
  }
}

function isCommand(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string');
}

function isVersion(value: unknown): value is string {
  return typeof value === 'string' && PYTHON_VERSION.test(value);
}
