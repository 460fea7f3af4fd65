import { homedir } from 'node:os';
import { join } from 'node:path';
import { BerthError } from '../../support/errors.ts';
import { DockerClient } from './client/docker-client.ts';
import { daemonMessage } from './client/docker.errors.ts';

const PING_TIMEOUT_MS = 500;
/** To sign in takes a few round trips. */
const SSH_PING_TIMEOUT_MS = 10_000;
const UNIX = 'unix://';
const PIPE = 'npipe://';

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
  const longest = Math.max(
    timeoutMs,
    hosts.some((host) => host.startsWith('ssh:')) ? SSH_PING_TIMEOUT_MS : 0,
  );
  const answers = await Promise.allSettled(
    hosts.map(async (host) => new DockerClient(host).ping(AbortSignal.timeout(longest))),
  );
  const first = hosts.find((_, index) => answers[index]?.status === 'fulfilled');
  if (first !== undefined) return first;
  const only =
    answers.length === 1 && answers[0]?.status === 'rejected' ? `: ${daemonMessage(answers[0].reason)}` : '';
  const waited = answers.some((answer) => answer.status === 'rejected' && isTimeout(answer.reason))
    ? ` (waited ${longest / 1000} s)`
    : '';
  throw new BerthError('unavailable', `no Docker daemon answers at ${hosts.join(', ')}${waited}${only}`);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}
