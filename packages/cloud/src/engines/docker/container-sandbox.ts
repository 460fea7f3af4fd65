import type { HostConfig } from './client/docker-objects.ts';
import { CONTAINER_PIDS, DEFAULT_CONTAINER_CAPABILITIES } from '../../domain/placement/container-sandbox.ts';
import type { ContainerSandbox } from '../../domain/placement/container-sandbox.ts';
import { BerthError } from '../../support/errors.ts';

/**
 * What a container may do to the machine that it runs on. The daemon's default seccomp profile applies, as
 * none is named here; nothing in a container gains more than it began with.
 */
export function sandboxOptions({ runtime, capabilities = [], pids }: ContainerSandbox): HostConfig {
  return {
    ...(runtime !== undefined && { Runtime: runtime }),
    Privileged: false,
    SecurityOpt: ['no-new-privileges'],
    CapDrop: ['ALL'],
    CapAdd: [...new Set([...DEFAULT_CONTAINER_CAPABILITIES, ...capabilities])],
    PidsLimit: pids ?? CONTAINER_PIDS,
  };
}

/** What the daemon says about itself. */
export interface DaemonSecurity {
  /** Names of the OCI runtimes it has. */
  runtimes: readonly string[];
  /** Root in a container is another user on the machine. */
  remapsUsers: boolean;
}

/** Throws if the daemon does not give what the data center's configuration asks for. */
export function checkSandbox(
  { runtime, requireUserNamespaces }: ContainerSandbox,
  { runtimes, remapsUsers }: DaemonSecurity,
): void {
  if (runtime !== undefined && !runtimes.includes(runtime))
    throw new BerthError(
      'unavailable',
      `the Docker daemon has no runtime ${JSON.stringify(runtime)} (it has: ${runtimes.join(', ')}); ` +
        'install it, or change the runtime of the data center',
    );
  if (requireUserNamespaces === true && !remapsUsers)
    throw new BerthError(
      'unavailable',
      'the data center requires user namespaces, and the Docker daemon does not remap users; start it ' +
        'with --userns-remap=default',
    );
}
