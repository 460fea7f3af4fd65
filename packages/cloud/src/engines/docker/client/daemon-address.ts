import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const UNIX = 'unix://';
const PIPE = 'npipe://';
const TLS_PORT = '2376';
const DEFAULT_PORT = '2375';

/** Where a daemon is. */
export type DaemonAddress =
  | { kind: 'socket'; socketPath: string }
  | { kind: 'tcp'; host: string; port: string; tls: boolean }
  | { kind: 'ssh'; host: string; port: string | undefined; username: string | undefined };

/** Parses an address in the format of DOCKER_HOST. */
export function parseDaemonAddress(address: string, env: NodeJS.ProcessEnv = process.env): DaemonAddress {
  for (const scheme of [UNIX, PIPE])
    if (address.startsWith(scheme)) return { kind: 'socket', socketPath: address.slice(scheme.length) };
  const { protocol, hostname, port, username } = new URL(
    address.includes('://') ? address : `tcp://${address}`,
  );
  // IPv6 addresses are in brackets in a URL only.
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  if (protocol === 'ssh:')
    return {
      kind: 'ssh',
      host,
      port: port || undefined,
      username: decodeURIComponent(username) || undefined,
    };
  const tls =
    protocol === 'https:' || port === TLS_PORT || (protocol === 'tcp:' && Boolean(env['DOCKER_TLS_VERIFY']));
  return { kind: 'tcp', host, port: port || (tls ? TLS_PORT : DEFAULT_PORT), tls };
}

export interface DaemonCertificates {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

/**
 * The files that Docker's own command uses: ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH, or else in
 * ~/.docker. Without them the daemon's certificate is checked like any other, and none is sent.
 */
export function readDaemonCertificates(env: NodeJS.ProcessEnv = process.env): DaemonCertificates {
  const folder = env['DOCKER_CERT_PATH'] || join(homedir(), '.docker');
  const read = <Name extends keyof DaemonCertificates>(name: Name): DaemonCertificates => {
    try {
      return { [name]: readFileSync(join(folder, `${name}.pem`)) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw error;
    }
  };
  return { ...read('ca'), ...read('cert'), ...read('key') };
}
