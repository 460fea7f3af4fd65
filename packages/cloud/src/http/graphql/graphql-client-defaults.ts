/** What clients leave out, and count on. */

/** runpod-python documents a CPU pod that names no instance: `create_pod("test", "runpod/stack")`. The smallest of its flavour. */
export const DEFAULT_CPU_POD_INSTANCE = 'cpu3c-2-4';
