import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';

/** What an engine finds of what it needs, on this machine and with this configuration. It is asked without a server, so it starts nothing and answers soon. */
export type EngineCheck = (env: Environment) => Promise<CheckResult>;
