import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { waitFor } from './wait-for.ts';

/** The first user of the machine that root and the others in containers become. */
export const REMAPPED_ROOT = 500_000;
const USERS = 65_536;
const START_WITHIN_MS = 30_000;
const USER = { name: 'nobody', group: 'nogroup' };

/**
 * The daemon runs in a mount namespace with its own /etc/subuid and /etc/subgid, so nothing of this machine is
 * changed, and as long as the shell's standard input is open. The bridge has a fixed hardware address, as in
 * docker-daemon.mjs.
 */
const SUPERVISOR = `
folder=$1 bridge=$2 address=$3
mount --make-rprivate / && mount --bind "$folder/subuid" /etc/subuid && mount --bind "$folder/subgid" /etc/subgid || exit 1
ip link add name "$bridge" address 02:42:0a:c8:00:02 type bridge && ip address add "$address" dev "$bridge" && ip link set "$bridge" up || exit 1
dockerd --userns-remap ${USER.name}:${USER.group} --host "unix://$folder/docker.sock" --data-root "$folder/data" \\
  --exec-root "$folder/exec" --pidfile "$folder/pid" --bridge "$bridge" --iptables=false --ip6tables=false \\
  --ip-masq=false --ip-forward=false --shutdown-timeout 1 >"$folder/log" 2>&1 </dev/null &
daemon=$!
read -r _
kill "$daemon"
wait "$daemon"
ip link delete "$bridge"
while read -r _ place _; do case $place in "$folder"/*) umount -l "$place" ;; esac; done </proc/mounts
rm -rf "$folder"
`;

export interface RemappingDaemon {
  host: string;
  stop(): Promise<void>;
}

/** Why no such daemon can be started here; undefined if one can. */
export function remappingProblem(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root on Linux can start a daemon';
  const missing = ['dockerd', 'containerd', 'runc', 'ip', 'unshare'].find((program) => !isInstalled(program));
  if (missing !== undefined) return `${missing} is not installed here`;
  return ['/etc/subuid', '/etc/subgid'].every((file) => existsSync(file))
    ? undefined
    : 'this machine has no /etc/subuid';
}

/** A Docker daemon with user namespaces: root in its containers is no user that this machine has. */
export async function startRemappingDaemon(): Promise<RemappingDaemon> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-remap-'));
  // The mapped users pass through it.
  chmodSync(folder, 0o711);
  const range = `${REMAPPED_ROOT}:${USERS}\n`;
  writeFileSync(join(folder, 'subuid'), `${USER.name}:${range}`);
  // By the user's name in both.
  writeFileSync(join(folder, 'subgid'), `${USER.name}:${range}`);
  const number = process.pid % 65_536;
  const address = `10.${150 + (number % 50)}.${(number >> 6) % 256}.1/24`;
  const supervisor = spawn(
    'unshare',
    ['--mount', 'sh', '-c', SUPERVISOR, 'sh', folder, `berthu${number}`, address],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    },
  );
  const ended = once(supervisor, 'exit');
  const stop = async (): Promise<void> => {
    supervisor.stdin.end();
    await ended;
  };
  try {
    await waitFor(
      'the daemon listens',
      () => {
        if (supervisor.exitCode !== null) throw new Error('the daemon could not be started');
        return readFileSync(join(folder, 'log'), { encoding: 'utf8', flag: 'a+' }).includes('API listen on');
      },
      START_WITHIN_MS,
    );
  } catch (error) {
    const log = readFileSync(join(folder, 'log'), { encoding: 'utf8', flag: 'a+' });
    await stop();
    throw new Error(`the daemon did not start:\n${log}`, { cause: error });
  }
  return { host: `unix://${folder}/docker.sock`, stop };
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program));
      return true;
    } catch {
      return false;
    }
  });
}
