import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { ContainerInspectInfo } from 'dockerode';
import { ruleError } from '../../support/errors.ts';
import { isNotFound, daemonStatus } from './docker.errors.ts';

/** The search path of a container without PATH. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Rejects if the container's program is not in the image. The daemon does not report that: it starts its init
 * process, which exits with 127 at once.
 */
export async function checkProgram(
  container: Docker.Container,
  { Path: program, Config: { Env: env, WorkingDir: folder } }: ContainerInspectInfo,
): Promise<void> {
  for (const path of candidatePaths(program, folder || '/', pathOf(env ?? [])))
    if (await isThere(container, path)) return;
  throw ruleError(`the command ${JSON.stringify(program)} was not found in the image`);
}

function pathOf(env: readonly string[]): string {
  return env.findLast((pair) => pair.startsWith('PATH='))?.slice('PATH='.length) || DEFAULT_PATH;
}

export function candidatePaths(program: string, folder: string, path: string): string[] {
  if (program.includes('/')) return [posix.resolve(folder, program)];
  return path.split(':').map((entry) => posix.resolve(folder, entry, program));
}

async function isThere(container: Docker.Container, path: string): Promise<boolean> {
  try {
    const answer = (await container.infoArchive({ path })) as Readable;
    answer.resume();
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    // Podman cannot inspect a container that never ran. A missing program then shows when it starts.
    if (daemonStatus(error) !== undefined) return true;
    throw error;
  }
}
