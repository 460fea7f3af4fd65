import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';

/**
 * Checks what an engine needs on this machine with this configuration. It runs without a server, so it must
 * start nothing and answer quickly.
 */
export type EngineCheck = (env: Environment) => Promise<CheckResult>;
