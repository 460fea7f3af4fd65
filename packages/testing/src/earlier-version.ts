import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Why a test with the version of this commit does not run, for its `skip`; false where it can. */
export function skipWithoutVersion(commit: string): string | false {
  try {
    execFileSync('git', ['cat-file', '-e', commit], { stdio: 'ignore' });
    return false;
  } catch {
    return 'the history is not here';
  }
}

/** Writes Berth as it was at this commit, with the packages of today, to a folder. Returns its program. */
export function writeEarlierVersion(commit: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  execFileSync('sh', ['-c', `git archive ${commit} packages | tar -x -C "$0"`, folder]);
  for (const name of ['node_modules', 'packages/cloud/node_modules'])
    if (existsSync(name)) symlinkSync(resolve(name), join(folder, name));
  return join(folder, 'packages/cloud/bin/berth');
}
