import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { waitFor } from './wait-for.ts';

const START_WITHIN_MS = 30_000;

/**
 * The daemon runs as long as the shell's standard input is open. Its data is on the mounted disk. The bridge has a
 * fixed hardware address, as in docker-daemon.mjs.
 */
const SUPERVISOR = `
folder=$1 bridge=$2 address=$3
ip link add name "$bridge" address 02:42:0a:c8:00:03 type bridge && ip address add "$address" dev "$bridge" && ip link set "$bridge" up || exit 1
dockerd --host "unix://$folder/docker.sock" --data-root "$folder/disk/docker" --exec-root "$folder/exec" --pidfile "$folder/pid" \\
  --bridge "$bridge" --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false --shutdown-timeout 1 >"$folder/log" 2>&1 </dev/null &
daemon=$!
read -r _
kill "$daemon"
wait "$daemon"
ip link delete "$bridge"
while read -r _ place _; do case $place in "$folder"/disk/*|"$folder"/exec/*) umount -l "$place" ;; esac; done </proc/mounts
umount -l "$folder/disk"
rm -rf "$folder"
`;

export interface SmallDiskDaemon {
  host: string;
  /** A folder on its disk. */
  disk: string;
  stop(): Promise<void>;
}

/** Why no such daemon can be started here; undefined if one can. */
export function smallDiskProblem(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root on Linux can start a daemon';
  const missing = ['dockerd', 'containerd', 'runc', 'ip', 'mkfs.ext4'].find(
    (program) => !isInstalled(program),
  );
  if (missing !== undefined) return `${missing} is not installed here`;
  const folder = mkdtempSync(join(tmpdir(), 'berth-disk-'));
  try {
    mountDisk(folder, 10);
    execFileSync('umount', ['--lazy', join(folder, 'disk')]);
    return undefined;
  } catch {
    return 'no file can be mounted as a disk here';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file with a file system of its own, mounted in a folder. */
function mountDisk(folder: string, megabytes: number): void {
  const file = join(folder, 'disk.img');
  mkdirSync(join(folder, 'disk'));
  const quiet = { stdio: 'ignore' } as const;
  execFileSync('truncate', ['-s', `${megabytes}M`, file], quiet);
  execFileSync('mkfs.ext4', ['-q', '-m', '0', file], quiet);
  execFileSync('mount', ['-o', 'loop', file, join(folder, 'disk')], quiet);
}

/** A Docker daemon whose disk has so many megabytes. */
export async function startSmallDiskDaemon(megabytes: number): Promise<SmallDiskDaemon> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-small-'));
  mountDisk(folder, megabytes);
  const number = process.pid % 65_536;
  const address = `10.${100 + (number % 50)}.${(number >> 6) % 256}.1/24`;
  const supervisor = spawn('sh', ['-c', SUPERVISOR, 'sh', folder, `berths${number}`, address], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(supervisor, 'exit');
  const stop = async (): Promise<void> => {
    supervisor.stdin.end();
    await ended;
  };
  const log = (): string => readFileSync(join(folder, 'log'), { encoding: 'utf8', flag: 'a+' });
  try {
    await waitFor(
      'the daemon listens',
      () => {
        if (supervisor.exitCode !== null) throw new Error('the daemon could not be started');
        return log().includes('API listen on');
      },
      START_WITHIN_MS,
    );
  } catch (error) {
    const words = log();
    await stop();
    throw new Error(`the daemon did not start:\n${words}`, { cause: error });
  }
  return { host: `unix://${folder}/docker.sock`, disk: join(folder, 'disk'), stop };
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .concat('/usr/sbin', '/sbin')
    .some((folder) => {
      try {
        accessSync(join(folder, program));
        return true;
      } catch {
        return false;
      }
    });
}
