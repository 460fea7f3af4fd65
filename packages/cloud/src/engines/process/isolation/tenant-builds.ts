import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ids } from '../../../support/ids.ts';
import { removeTree } from '../../../support/remove-tree.ts';
import { InstanceFolder } from '../instance-folder.ts';
import {
  type BuildCommand,
  runBuildCommand,
  type RunBuildCommand,
  runToEnd,
} from '../python/build-command.ts';
import {
  asUser,
  environmentScript,
  inNewSandbox,
  TRUSTED_ENVIRONMENT,
  withUnusualVariables,
} from './account-command.ts';
import { buildInstanceView } from './instance-view.ts';
import { programFolders } from './program-folders.ts';
import type { Tenant } from './tenant.ts';
import { chownTree } from '../../chown-tree.ts';
import { grantRead, makePassable } from './tenant-files.ts';

/** Of /dev/shm, in which nothing of a build stays. */
const BUILD_SHM_BYTES = 1024 ** 3;

export interface TenantBuildsDeps {
  /** Undefined if the account's commands run as the user that runs Berth. */
  tenantOf(accountId: string): Promise<Tenant | undefined>;
  data: string;
  /** Folders that all accounts may read. */
  readable: () => readonly string[];
  ids: Ids;
}

/**
 * Runs a command of a build as its account's instances run: to install a package is to run its code. The
 * command may change the folder of the build and its home.
 */
export function tenantBuilds(deps: TenantBuildsDeps): RunBuildCommand {
  return async (command, onLine, signal) => {
    const tenant = await deps.tenantOf(command.owner);
    return tenant === undefined
      ? runBuildCommand(command, onLine, signal)
      : runAsTenant(command, tenant, deps, onLine, signal);
  };
}

async function runAsTenant(
  { argv, cwd, env, root, programs = [] }: BuildCommand,
  { user, namespaces }: Tenant,
  { data, readable, ids }: TenantBuildsDeps,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<number | null> {
  const home = env['HOME'] ?? root;
  for (const path of [root, home]) await chownTree(path, user);
  const source = [cwd, ...argv].filter((path) => isImage(path, data, [root, home]));
  for (const path of source) await grantRead(path, user);
  const command = withUnusualVariables(env, argv);
  const process = {
    cwd: '/',
    root,
    uid: user.uid,
    env: { ...TRUSTED_ENVIRONMENT, BERTH_ROOT: root },
    environmentScript: environmentScript(env),
  };
  if (!namespaces) {
    for (const path of [root, home, ...source]) await makePassable(data, path);
    return runToEnd({ ...process, argv: asUser(user, cwd, command) }, onLine, signal);
  }
  const builds = join(data, 'builds');
  await mkdir(builds, { recursive: true, mode: 0o700 });
  const folder = new InstanceFolder(join(builds, ids.resource()));
  try {
    folder.create(user);
    buildInstanceView({
      folder,
      user,
      mounts: [],
      readable: [
        ...readable(),
        ...source,
        // Not what an argument leads to: the Python of an environment is a link that the account can change.
        ...programs.flatMap(programFolders),
      ],
      writable: [root, home],
      data,
      gpus: false,
      memoryInBytes: BUILD_SHM_BYTES,
    });
    await chownTree(folder.root, user);
    const { fstab, view } = folder;
    return await runToEnd(
      { ...process, argv: inNewSandbox({ fstab, view, cwd, user }, command) },
      onLine,
      signal,
    );
  } finally {
    await removeTree(folder.path);
  }
}

/** A folder of Berth that is not the build's own: the image, which the build reads. */
function isImage(path: string, data: string, own: readonly string[]): boolean {
  return (
    path.startsWith(`${data}/`) &&
    !own.some((folder) => path === folder || path.startsWith(`${folder}/`)) &&
    statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  );
}
