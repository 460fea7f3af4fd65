/** Clients recognise missing capacity by this text, so it must not change. */
export const NO_CAPACITY_MESSAGE =
  'There are no longer any instances available with the requested specifications. Please refresh and try again.';

/** The share of its machine that a pod or a worker gets for each of its GPUs by default. */
export const VCPU_PER_GPU = 4;
export const MEMORY_PER_GPU_GB = 16;
