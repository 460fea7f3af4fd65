import { cpuInstanceId, DEFAULT_CPU_CHOICE } from '../../domain/catalog/cpu-selection.ts';

/** runpod-python documents a CPU pod that names no instance: `create_pod("test", "runpod/stack")`. */
export const DEFAULT_CPU_POD_INSTANCE = cpuInstanceId(DEFAULT_CPU_CHOICE);
