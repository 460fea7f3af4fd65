// Finds a Docker daemon for the tests, or runs one of its own for as long as they last.
//
// One that answers is used: DOCKER_HOST, or else the usual socket. Where none does, and dockerd
// is installed and we are root, one is started with everything of it in a temporary folder: its
// data, its state, its socket and a network bridge of its own. It adds no firewall rules
// (--iptables=false): published ports go through docker-proxy, and containers reach this machine
// at the bridge's address, without one. Only where the FORWARD chain drops packets, as an earlier
// Docker leaves it, one rule lets containers reach each other; it is deleted with the daemon. The
// daemon chooses its storage driver: overlay2 where the file system supports it, else vfs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const USUAL_SOCKET = '/var/run/docker.sock';
const START_WITHIN_MS = 30_000;
const CHECK_INTERVAL_MS = 50;

// The daemon runs as long as the shell's standard input is open, so it ends with this process however
// that ends, and the shell deletes what it leaves behind. The bridge has a fixed hardware address:
// otherwise it takes that of a container, and when that container ends, the others cannot reach this
// machine until their ARP entries expire.
const SUPERVISOR = `
folder=$1 bridge=$2 address=$3
ip link add name "$bridge" address 02:42:0a:c8:00:01 type bridge && ip address add "$address" dev "$bridge" && ip link set "$bridge" up || exit 1
forward="FORWARD -i br-+ -o br-+ -m comment --comment $bridge -j ACCEPT"
if iptables -S FORWARD 2>/dev/null | grep -qx -- '-P FORWARD DROP'; then iptables -I $forward; else forward=; fi
dockerd --host "unix://$folder/docker.sock" --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \\
  --bridge "$bridge" --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false --shutdown-timeout 1 >"$folder/log" 2>&1 </dev/null &
daemon=$!
echo "$daemon"
read -r _
kill "$daemon"
wait "$daemon"
ip link delete "$bridge"
[ -z "$forward" ] || iptables -D $forward
# The daemon leaves mounts of containers that did not stop.
while read -r _ place _; do case $place in "$folder"/*) umount -l "$place" ;; esac; done </proc/mounts
rm -rf "$folder"
`;

/**
 * @typedef {{ host: string, stop(): Promise<void> }} DockerForTests
 * @returns {Promise<DockerForTests | { reason: string }>} where it answers, or why there is none, in one line
 */
export async function findOrStartDocker() {
  const given = process.env['DOCKER_HOST'];
  if (given)
    return (await answers(given))
      ? { host: given, stop: async () => undefined }
      : missing(`nothing answers at DOCKER_HOST (${given})`);
  if (await answers(`unix://${USUAL_SOCKET}`))
    return { host: `unix://${USUAL_SOCKET}`, stop: async () => undefined };
  if (process.platform !== 'linux')
    return missing('no Docker daemon answers, and one can be started on Linux only');
  for (const program of ['dockerd', 'containerd', 'runc', 'ip'])
    if (!isInstalled(program))
      return missing(`no Docker daemon answers, and ${program} is not installed here to start one`);
  if (process.getuid?.() !== 0) return missing('no Docker daemon answers, and only root can start one');
  return startDaemon();
}

async function startDaemon() {
  const folder = mkdtempSync(join(tmpdir(), 'berth-docker-'));
  const host = `unix://${folder}/docker.sock`;
  const number = process.pid % 65_536;
  const address = `10.${200 + (number % 50)}.${(number >> 6) % 256}.1/24`;
  const supervisor = spawn('sh', ['-c', SUPERVISOR, 'sh', folder, `berth${number}`, address], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const ended = once(supervisor, 'exit');
  const stop = async () => {
    supervisor.ref();
    supervisor.stdin.end();
    await ended;
  };
  const daemon = await firstLine(supervisor.stdout);
  const until = performance.now() + START_WITHIN_MS;
  while (!(await answers(host))) {
    if (existsSync(`/proc/${daemon}/stat`) && performance.now() < until) {
      await pause(CHECK_INTERVAL_MS);
      continue;
    }
    const words = existsSync(join(folder, 'log'))
      ? (readFileSync(join(folder, 'log'), 'utf8').trim().split('\n').at(-1) ?? '')
      : 'its network could not be made';
    await stop();
    return missing(`dockerd does not start here: ${words}`);
  }
  // Neither of them keeps the run from ending; the daemon then ends with it.
  supervisor.unref();
  for (const pipe of [supervisor.stdin, supervisor.stdout]) {
    const socket = /** @type {import('node:net').Socket} */ (/** @type {unknown} */ (pipe));
    socket.unref();
  }
  return { host, stop };
}

/**
 * Where Docker is required, a run without it is a failure.
 * @param {string} reason
 */
function missing(reason) {
  if (process.env['BERTH_REQUIRE_DOCKER'] === '1') throw new Error(`BERTH_REQUIRE_DOCKER=1, but ${reason}`);
  return { reason };
}

/** @param {string} program */
function isInstalled(program) {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .concat('/usr/sbin', '/sbin')
    .some((folder) => {
      try {
        accessSync(join(folder, program), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * @param {import('node:stream').Readable} stream
 * @returns {Promise<string>} empty where it ends before
 */
async function firstLine(stream) {
  const [chunk] = await Promise.race([once(stream, 'data'), once(stream, 'end').then(() => [''])]);
  return String(chunk).trim();
}

/**
 * @param {string} host
 * @returns {Promise<boolean>}
 */
function answers(host) {
  const place = host.startsWith('unix://') ? { socketPath: host.slice('unix://'.length) } : addressOf(host);
  return new Promise((resolve) => {
    const asking = request({ ...place, path: '/_ping', timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asking.on('error', () => resolve(false));
    asking.on('timeout', () => asking.destroy());
    asking.end();
  });
}

/** @param {string} host */
function addressOf(host) {
  const { hostname, port } = new URL(host);
  return { hostname, port };
}
