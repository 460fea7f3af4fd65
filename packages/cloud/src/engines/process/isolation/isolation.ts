import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { AccountIsolation } from '../../../domain/placement/engine-capacity.ts';
import type { FileOwner } from '../../../support/file-owner.ts';
import type { UserRange } from '../../../support/user-range.ts';
import { asUser, inNewSandbox, missingPrograms, TRUSTED_ENVIRONMENT } from './account-command.ts';
import { SandboxView } from './sandbox-view.ts';

/** How the processes of other accounts than root are kept apart on this machine. */
export interface Isolation {
  mode: AccountIsolation;
  /** Why it is not `namespaces`, for operators; why they are refused, for everybody. */
  reason: string | undefined;
}

export type IsolationSetting = 'auto' | 'users' | 'none';

const PROBE_TIMEOUT_MS = 10_000;
const WHAT_TO_DO =
  'run Berth as root or in a user namespace (docs/isolation.md), connect Docker, or set ' +
  'process.isolation to none (BERTH_PROCESS_ISOLATION=none) if all accounts may read and change ' +
  'everything of each other and of Berth';

/** What is known without trying; undefined if only a probe can show it. */
export function isolationWithoutProbe(setting: IsolationSetting): Isolation | undefined {
  if (setting === 'none') return { mode: 'none', reason: 'process.isolation is none' };
  if (process.getuid?.() !== 0) return refused('Berth does not run as root');
  const missing = missingPrograms();
  if (missing.includes('setpriv'))
    return refused(`this machine lacks setpriv, a part of util-linux; install it, or`, '');
  return undefined;
}

/**
 * Tries what this machine lets Berth do, with a command as an account's user: first in namespaces, then
 * without. The data folder is where instances will be.
 */
export async function probeIsolation(
  setting: IsolationSetting,
  range: UserRange,
  data: string,
): Promise<Isolation> {
  const known = isolationWithoutProbe(setting);
  if (known !== undefined) return known;
  const user = { uid: range.first, gid: range.first };
  const inNamespaces =
    setting === 'users'
      ? 'process.isolation is users'
      : await problemOf(() => probeNamespaces(user, join(data, `.probe-${process.pid}`)));
  if (inNamespaces === undefined) return { mode: 'namespaces', reason: undefined };
  const asOtherUser = await problemOf(() => run(asUser(user, '/', ['true'])));
  if (asOtherUser === undefined) {
    const parent = dirname(resolve(data));
    if ((await problemOf(() => run(asUser(user, parent, ['true'])))) === undefined)
      return { mode: 'users', reason: inNamespaces };
    return refused(
      `there are no namespaces here (${inNamespaces}), and users of accounts cannot enter ${parent}; ` +
        'move the data folder with --data,',
      '',
    );
  }
  return refused(
    `Berth cannot run a process as user ${user.uid} (${asOtherUser}); change process.users,`,
    '',
  );
}

function refused(why: string, separator = ';'): Isolation {
  return {
    mode: 'refused',
    reason: `this machine runs processes of the root account only: ${why}${separator} ${WHAT_TO_DO}`,
  };
}

async function probeNamespaces(user: FileOwner, folder: string): Promise<void> {
  const [view, tmp, fstab] = [join(folder, 'view'), join(folder, 'tmp'), join(folder, 'fstab')];
  try {
    for (const path of [view, tmp]) mkdirSync(path, { recursive: true, mode: 0o755 });
    chmodSync(view, 0o755);
    chownSync(tmp, user.uid, user.gid);
    const built = new SandboxView(view);
    built.addSystem({ tmp, gpus: false });
    writeFileSync(fstab, built.toFstab());
    await run(inNewSandbox({ fstab, view, cwd: '/tmp', user }, ['test', '-r', '/proc/self/status']));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function problemOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function run([program, ...args]: readonly [string, ...string[]]): Promise<void> {
  return new Promise((resolve, reject) => {
    // Descriptor 4, the environment, is not open here; reading it fails, and the shell continues.
    execFile(
      '/bin/sh',
      ['-c', 'exec "$@" 4</dev/null', 'sh', program, ...args],
      { env: TRUSTED_ENVIRONMENT, cwd: '/', timeout: PROBE_TIMEOUT_MS },
      (error, _stdout, stderr) => {
        if (error === null) resolve();
        else reject(new Error(stderr.trim().split('\n')[0] || `exit code ${error.code}`, { cause: error }));
      },
    );
  });
}
