import type { EngineCheck } from '../engine-check.ts';
import { firewallProblem } from '../iptables.ts';
import { findDaemon, candidateHosts } from './daemon-discovery.ts';

const CHECK = 'docker';
/** A daemon on a busy machine answers late. Without one, sockets are missing, and nothing is waited for. */
const PATIENCE_MS = 5_000;
const WITHOUT = 'folders run, images of a registry do not';

/** Berth runs without Docker, so the check passes and says what cannot run. */
export const checkDocker: EngineCheck = async (env) => {
  const given = env['BERTH_DOCKER'] || 'auto';
  if (given === 'off') return { check: CHECK, ok: true, found: `turned off with BERTH_DOCKER; ${WITHOUT}` };
  try {
    const host = await findDaemon(candidateHosts(given === 'auto' ? undefined : given, env), PATIENCE_MS);
    return { check: CHECK, ok: true, found: `a daemon answers at ${host}; ${await isolation(host)}` };
  } catch (error) {
    return {
      check: CHECK,
      ok: true,
      found: `${error instanceof Error ? error.message : String(error)}; ${WITHOUT}`,
    };
  }
};

/** What of this machine is closed to containers. */
async function isolation(host: string): Promise<string> {
  const problem = host.startsWith('unix://')
    ? await firewallProblem()
    : 'the daemon may be on another machine';
  return problem === undefined
    ? 'containers reach nothing of this machine but Berth'
    : `containers reach the ports of this machine: its firewall is not managed, because ${problem} (docs/isolation.md)`;
}
