import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import { daemonMessage } from './docker.errors.ts';

const PING_TIMEOUT_MS = 500;
const UNIX = 'unix://';
const PIPE = 'npipe://';

/** The library's types leave the options out. */
interface PingableClient {
  ping(options: { abortSignal: AbortSignal }): Promise<unknown>;
}

/** Where a daemon may be: where one says, or else where Docker and Podman usually are. */
export function candidateHosts(given: string | undefined, env: NodeJS.ProcessEnv = process.env): string[] {
  const told = given ?? env['DOCKER_HOST'];
  if (told) return [told];
  if (process.platform === 'win32') return [`${PIPE}//./pipe/docker_engine`];
  const own = env['XDG_RUNTIME_DIR'];
  const sockets = [
    '/var/run/docker.sock',
    join(homedir(), '.docker/run/docker.sock'),
    ...(own ? [join(own, 'docker.sock')] : []),
    '/run/podman/podman.sock',
    ...(own ? [join(own, 'podman/podman.sock')] : []),
  ];
  return sockets.map((socket) => `${UNIX}${socket}`);
}

/** The first of these places where a daemon answers, told within half a second. Rejects with `unavailable` where none does. */
export async function findDaemon(places: readonly string[]): Promise<string> {
  const answers = await Promise.allSettled(places.map(ping));
  const first = places.find((_, index) => answers[index]?.status === 'fulfilled');
  if (first !== undefined) return first;
  const only =
    answers.length === 1 && answers[0]?.status === 'rejected' ? `: ${daemonMessage(answers[0].reason)}` : '';
  throw new BerthError('unavailable', `no Docker daemon answers at ${places.join(', ')}${only}`);
}

/** Most machines without a daemon never need the library, which is large: the usual places are asked without it. */
async function ping(place: string): Promise<void> {
  const options = dockerClientOptions(place);
  if (options.socketPath !== undefined) return pingWithoutClient({ socketPath: options.socketPath });
  if (options.protocol === 'http') return pingWithoutClient({ host: options.host, port: options.port });
  const { default: Client } = await import('dockerode');
  await (new Client(options) as unknown as PingableClient).ping({
    abortSignal: AbortSignal.timeout(PING_TIMEOUT_MS),
  });
}

function pingWithoutClient(
  place: { socketPath: string } | { host: string | undefined; port: string | number | undefined },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const asking = request(
    { ...place, path: '/_ping', agent: false, signal: AbortSignal.timeout(PING_TIMEOUT_MS) },
    (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`its ping was answered with ${response.statusCode}`));
    },
  );
  asking.on('error', reject);
  asking.end();
  return promise;
}

/** An address in the way of DOCKER_HOST. */
export function dockerClientOptions(host: string): Docker.DockerOptions {
  for (const scheme of [UNIX, PIPE]) {
    // The library reads DOCKER_HOST too, and would prefer a host in it to this socket.
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
