import type { CheckResult } from '../support/check-result.ts';
import type { Config } from '../support/config/config.ts';
import type { Environment } from '../support/config/config-from-environment.ts';

/** What the checks read: variables that have the values of the configuration, from wherever it comes. */
export function checkEnvironment(env: Environment, { docker, gpus, process }: Config): Environment {
  return {
    ...env,
    BERTH_DOCKER: docker,
    BERTH_GPUS: typeof gpus === 'string' ? gpus : gpus.join(','),
    BERTH_PROCESS_ISOLATION: process.isolation,
    BERTH_PROCESS_USERS: process.users,
  };
}

/**
 * Checks what an engine needs on this machine with this configuration. It runs without a server, so it must
 * start nothing and answer quickly.
 */
export type EngineCheck = (env: Environment) => Promise<CheckResult>;
