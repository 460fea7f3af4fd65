import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

/**
 * Built by tests/kubernetes/build.sh from the Go module proxy. `kube` is every part of Kubernetes in one
 * program.
 */
const BUILT = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
];
const NEEDED = ['etcd', 'pause', ...BUILT];
/**
 * Installed from Debian: docker.io or containerd, containernetworking-plugins, iproute2, iptables, openssl.
 */
const SYSTEM_PROGRAMS = ['containerd', 'ctr', 'runc', 'ip', 'iptables', 'openssl', 'unshare', 'bash'];
const CNI_PLUGIN = '/usr/lib/cni/ptp';
const ROOT = resolve(import.meta.dirname, '../../../..');
const CACHE = join(homedir(), '.cache/berth/kubernetes');
/** A built copy may lie beside the checkout. */
const ARCHIVE = resolve(ROOT, '../shared/kubernetes/bin-linux-x64.tar.xz');
const BUILD_SCRIPT = join(ROOT, 'tests/kubernetes/build.sh');

/** The folder with the programs of a cluster, or why there is none, in one line. */
export function findClusterPrograms(others: readonly string[] = []): { bin: string } | { reason: string } {
  const found = findPrograms();
  if ('reason' in found) return found;
  const lacking = others.find((program) => !existsSync(join(found.bin, program)));
  if (lacking === undefined) return found;
  if (found.bin !== CACHE || process.env['BERTH_BUILD_KUBERNETES'] !== '1')
    return { reason: `${lacking} is not among the programs in ${found.bin}; ${BUILD_SCRIPT} builds it` };
  return { bin: build() };
}

function findPrograms(): { bin: string } | { reason: string } {
  if (process.platform !== 'linux') return { reason: 'a cluster can be started on Linux only' };
  if (process.getuid?.() !== 0) return { reason: 'only root can start a cluster' };
  const missing = SYSTEM_PROGRAMS.find((program) => !isInstalled(program));
  if (missing !== undefined) return { reason: `${missing} is not installed` };
  if (!existsSync(CNI_PLUGIN)) return { reason: 'containernetworking-plugins is not installed' };
  const given = process.env['BERTH_TEST_KUBERNETES_BIN'];
  if (given)
    return isComplete(given)
      ? { bin: given }
      : { reason: `BERTH_TEST_KUBERNETES_BIN (${given}) lacks programs` };
  if (isComplete(CACHE)) return { bin: CACHE };
  if (process.arch === 'x64' && existsSync(ARCHIVE)) return { bin: unpack(ARCHIVE, CACHE) };
  if (process.env['BERTH_BUILD_KUBERNETES'] === '1') return { bin: build() };
  return {
    reason:
      'no programs of Kubernetes are here; BERTH_TEST_KUBERNETES_BIN names a folder with them, ' +
      'BERTH_BUILD_KUBERNETES=1 builds them (15 minutes, needs Go)',
  };
}

/** Programs that are there stay. */
function build(): string {
  execFileSync('bash', [BUILD_SCRIPT, CACHE], { stdio: ['ignore', 'inherit', 'inherit'] });
  return CACHE;
}

function isComplete(folder: string): boolean {
  return NEEDED.every((program) => existsSync(join(folder, program)));
}

/** Whole or not at all: another run may unpack it at the same time. */
function unpack(archive: string, folder: string): string {
  mkdirSync(dirname(folder), { recursive: true });
  const draft = mkdtempSync(`${folder}-`);
  try {
    execFileSync('tar', ['-xJf', archive, '-C', draft]);
    if (!isComplete(folder)) {
      rmSync(folder, { recursive: true, force: true });
      renameSync(draft, folder);
    }
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}

export function isInstalled(program: string): boolean {
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
