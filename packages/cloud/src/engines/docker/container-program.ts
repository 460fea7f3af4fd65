import { posix } from 'node:path';
import { ruleError } from '../../support/errors.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { InspectedContainer } from './client/docker-objects.ts';
import { isNotFound, daemonStatus } from './client/docker.errors.ts';

/** The search path of a container without PATH. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Rejects if the container's program is not in the image. The daemon does not report that: it starts its init
 * process, which exits with 127 at once.
 */
export async function checkProgram(
  client: DockerClient,
  { Id: containerId, Path: program, Config: { Env: env, WorkingDir: folder } }: InspectedContainer,
): Promise<void> {
  for (const path of candidatePaths(program, folder || '/', pathOf(env ?? [])))
    if (await isThere(client, containerId, path)) return;
  throw ruleError(`the command ${JSON.stringify(program)} was not found in the image`);
}

function pathOf(env: readonly string[]): string {
  return env.findLast((pair) => pair.startsWith('PATH='))?.slice('PATH='.length) || DEFAULT_PATH;
}

export function candidatePaths(program: string, folder: string, path: string): string[] {
  if (program.includes('/')) return [posix.resolve(folder, program)];
  return path.split(':').map((entry) => posix.resolve(folder, entry, program));
}

async function isThere(client: DockerClient, containerId: string, path: string): Promise<boolean> {
  try {
    await client.head(`/containers/${containerId}/archive`, { path });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    // Podman cannot inspect a container that never ran. A missing program then shows when it starts.
    if (daemonStatus(error) !== undefined) return true;
    throw error;
  }
}
