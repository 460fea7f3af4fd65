import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PythonHook } from './instance.ts';

const HOOK_FILE = 'sitecustomize.py';

/** Why the hook cannot be used on this machine; undefined if it can. */
export function pythonHookProblem({ source, entry }: PythonHook): string | undefined {
  const file = join(source, entry, HOOK_FILE);
  return existsSync(file) ? undefined : `${file} is missing`;
}

/** The log line of an instance that runs without its hook. */
export function notAcceleratedLine(reason: string): string {
  return `This worker is not accelerated: ${reason}.`;
}

/** `existing`: the value that the endpoint or the image sets. */
export function prependPythonPath(folder: string, existing: string | undefined): string {
  return existing === undefined || existing === '' ? folder : `${folder}:${existing}`;
}
