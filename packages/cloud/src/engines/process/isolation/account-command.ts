import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ACCOUNT_PIDS } from '../../../domain/placement/container-sandbox.ts';
import type { FileOwner } from '../../../support/file-owner.ts';

type Command = readonly [string, ...string[]];

/** The descriptor on which a command gets its environment. */
export const ENVIRONMENT_FD = 4;

/**
 * The environment of programs that run as root on behalf of an account: nothing in it comes from the account.
 */
export const TRUSTED_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

const SANDBOX = fileURLToPath(new URL('../sandbox.sh', import.meta.url));
const PROGRAMS = ['unshare', 'nsenter', 'setpriv', 'mount', 'umount', 'pivot_root'];

/** Programs of util-linux that isolation needs and this machine does not have. */
export function missingPrograms(): string[] {
  const folders = (TRUSTED_ENVIRONMENT['PATH'] ?? '').split(':');
  return PROGRAMS.filter((name) => !folders.some((folder) => existsSync(`${folder}/${name}`)));
}

/**
 * Runs as the account's user: it goes to the working folder, sets the environment that it reads from
 * ENVIRONMENT_FD and becomes the command. Root never sees these variables: LD_PRELOAD alone would give the
 * account root's rights. Names that a shell cannot set are given to env(1). The number of processes is limited
 * here, since not every machine has cgroups, and builds have none: dash calls that -p, bash -u. A lower limit
 * of the machine stays.
 */
const SET_ENVIRONMENT = `{ ulimit -p ${ACCOUNT_PIDS} || ulimit -u ${ACCOUNT_PIDS}; } 2>/dev/null; cd "$1" && shift && eval "$(cat <&${ENVIRONMENT_FD})" && exec ${ENVIRONMENT_FD}<&- && exec "$@"`;

/** The command as a user without any right of root, with the environment from ENVIRONMENT_FD. */
export function asUser({ uid, gid }: FileOwner, cwd: string, argv: readonly string[]): Command {
  return [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--no-new-privs',
    '--inh-caps=-all',
    '--bounding-set=-all',
    '--',
    '/bin/sh',
    '-c',
    SET_ENVIRONMENT,
    'sh',
    cwd,
    ...argv,
  ];
}

export interface SandboxOptions {
  /** The file with the mounts, and the folder that becomes the root. */
  fstab: string;
  view: string;
  cwd: string;
  user: FileOwner;
}

/** The command in namespaces of its own: other processes, other files, no shared memory of others. */
export function inNewSandbox({ fstab, view, cwd, user }: SandboxOptions, argv: readonly string[]): Command {
  return [
    'unshare',
    '--mount',
    '--pid',
    '--ipc',
    '--propagation=private',
    '--fork',
    '--kill-child',
    '--',
    '/bin/sh',
    SANDBOX,
    fstab,
    view,
    ...asUser(user, cwd, argv),
  ];
}

/** The command in the namespaces of a running instance, whose first process is `init`. */
export function inSandbox(init: number, cwd: string, user: FileOwner, argv: readonly string[]): Command {
  return ['nsenter', `--target=${init}`, '--mount', '--pid', '--ipc', '--', ...asUser(user, cwd, argv)];
}

/** The command in a cgroup from its first moment on, so that it cannot start processes outside. */
export function inCgroup(cgroup: string, argv: readonly string[]): Command {
  return ['/bin/sh', '-c', '{ echo 0 >"$0"; } 2>/dev/null; exec "$@"', `${cgroup}/cgroup.procs`, ...argv];
}

/** Variables that a shell gives a meaning of its own or does not let anyone set. */
const SHELL_VARIABLES = new Set(
  'BASHOPTS BASH_VERSINFO EUID IFS LINENO OPTARG OPTIND PPID PS1 PS2 PS4 PWD OLDPWD SHELLOPTS UID _'.split(
    ' ',
  ),
);

/** What the command reads from ENVIRONMENT_FD, as a shell script. */
export function environmentScript(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .filter(([name]) => isShellName(name))
    .map(([name, value]) => `export ${name}=${quote(value)}\n`)
    .join('');
}

/** The command with the variables that a shell cannot set. */
export function withUnusualVariables(
  env: Readonly<Record<string, string>>,
  argv: readonly string[],
): readonly string[] {
  const unusual = Object.entries(env).filter(([name]) => !isShellName(name));
  return unusual.length === 0
    ? argv
    : ['/usr/bin/env', ...unusual.map(([name, value]) => `${name}=${value}`), ...argv];
}

function isShellName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !SHELL_VARIABLES.has(name);
}

function quote(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
