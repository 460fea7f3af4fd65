import { homedir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { request } from '../../support/node-http.ts';
import { BerthError } from '../../support/errors.ts';
import { daemonMessage } from './docker.errors.ts';

const PING_TIMEOUT_MS = 500;
const UNIX = 'unix://';
const PIPE = 'npipe://';

/** The library's types lack these options. */
interface PingableClient {
  ping(options: { abortSignal: AbortSignal }): Promise<unknown>;
}

/** Candidate addresses: the configured one, otherwise the usual sockets of Docker and Podman. */
export function candidateHosts(given: string | undefined, env: NodeJS.ProcessEnv = process.env): string[] {
  const configured = given ?? env['DOCKER_HOST'];
  if (configured) return [configured];
  if (process.platform === 'win32') return [`${PIPE}//./pipe/docker_engine`];
  const runtimeFolder = env['XDG_RUNTIME_DIR'];
  const sockets = [
    '/var/run/docker.sock',
    join(homedir(), '.docker/run/docker.sock'),
    ...(runtimeFolder ? [join(runtimeFolder, 'docker.sock')] : []),
    '/run/podman/podman.sock',
    ...(runtimeFolder ? [join(runtimeFolder, 'podman/podman.sock')] : []),
  ];
  return sockets.map((socket) => `${UNIX}${socket}`);
}

/** The first host where a daemon answers in time. Rejects with `unavailable` if none does. */
export async function findDaemon(hosts: readonly string[], timeoutMs = PING_TIMEOUT_MS): Promise<string> {
  const answers = await Promise.allSettled(hosts.map((host) => ping(host, AbortSignal.timeout(timeoutMs))));
  const first = hosts.find((_, index) => answers[index]?.status === 'fulfilled');
  if (first !== undefined) return first;
  const only =
    answers.length === 1 && answers[0]?.status === 'rejected' ? `: ${daemonMessage(answers[0].reason)}` : '';
  const waited = answers.some((answer) => answer.status === 'rejected' && isTimeout(answer.reason))
    ? ` (waited ${timeoutMs / 1000} s)`
    : '';
  throw new BerthError('unavailable', `no Docker daemon answers at ${hosts.join(', ')}${waited}${only}`);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}

/**
 * The usual addresses are pinged without the library, which is large: machines without a daemon never load
 * it.
 */
async function ping(host: string, abortSignal: AbortSignal): Promise<void> {
  const options = dockerClientOptions(host);
  if (options.socketPath !== undefined)
    return pingWithoutClient({ socketPath: options.socketPath }, abortSignal);
  if (options.protocol === 'http')
    return pingWithoutClient({ host: options.host, port: options.port }, abortSignal);
  const { default: Client } = await import('dockerode');
  await (new Client(options) as unknown as PingableClient).ping({ abortSignal });
}

function pingWithoutClient(
  target: { socketPath: string } | { host: string | undefined; port: string | number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ping = request({ ...target, path: '/_ping', agent: false, signal }, (response) => {
    response.resume();
    if (response.statusCode === 200) resolve();
    else reject(new Error(`its ping was answered with ${response.statusCode}`));
  });
  ping.on('error', reject);
  ping.end();
  return promise;
}

/** Parses an address in the format of DOCKER_HOST. */
export function dockerClientOptions(host: string): Docker.DockerOptions {
  for (const scheme of [UNIX, PIPE]) {
    // The library also reads DOCKER_HOST and would prefer its host to this socket.
    if (host.startsWith(scheme)) return { socketPath: host.slice(scheme.length), host: undefined };
  }
  const { protocol, hostname, port, username } = new URL(host.includes('://') ? host : `tcp://${host}`);
  if (protocol === 'ssh:') return { protocol: 'ssh', host: hostname, ...(port && { port }), username };
  return {
    protocol: protocol === 'https:' || port === '2376' ? 'https' : 'http',
    host: hostname,
    port: port || '2375',
  };
}
