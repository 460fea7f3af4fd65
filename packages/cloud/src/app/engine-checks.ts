import type { EngineCheck } from '../engines/engine-check.ts';
import { checkIsolation } from '../engines/process/isolation/isolation-check.ts';
import { checkDocker } from '../engines/docker/docker-check.ts';
import { checkPython } from '../engines/process/python/python-check.ts';

/**
 * What the engines of cloud.ts have to check. It stands beside that file and not in it, so that `berth
 * doctor` also runs where the rest cannot be loaded.
 */
export const engineChecks: readonly EngineCheck[] = [checkIsolation, checkDocker, checkPython];
