import type { EngineCheck } from '../engine-check.ts';
import { findDaemon, candidateHosts } from './daemon-discovery.ts';

const CHECK = 'docker';
const WITHOUT = 'folders run, images of a registry do not';

/** Berth runs without Docker, so the check passes and says what cannot run. */
export const checkDocker: EngineCheck = async (env) => {
  const given = env['BERTH_DOCKER'] || 'auto';
  if (given === 'off') return { check: CHECK, ok: true, found: `turned off with BERTH_DOCKER; ${WITHOUT}` };
  try {
    return {
      check: CHECK,
      ok: true,
      found: `a daemon answers at ${await findDaemon(candidateHosts(given === 'auto' ? undefined : given, env))}`,
    };
  } catch (error) {
    return {
      check: CHECK,
      ok: true,
      found: `${error instanceof Error ? error.message : String(error)}; ${WITHOUT}`,
    };
  }
};
