import type { EngineCheck } from '../engines/engine-check.ts';
import { checkIsolation } from '../engines/process/isolation/isolation-check.ts';
import { checkDocker } from '../engines/docker/docker-check.ts';
import { checkGpus } from '../engines/gpu-check.ts';
import { checkPython } from '../engines/process/python/python-check.ts';

/**
 * The checks of the engines. They are apart from the rest of the composition, so that `berth doctor` also
 * runs where that cannot be loaded.
 */
export const engineChecks: readonly EngineCheck[] = [checkIsolation, checkDocker, checkGpus, checkPython];
