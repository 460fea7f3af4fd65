import type { GpuCapacity } from './engine-capacity.ts';

/** The GPUs that are there, in words, for an answer that refuses others. */
export function describeGpus(gpus: readonly GpuCapacity[]): string {
  if (gpus.length === 0) return 'no GPU (the setting gpus: virtual adds virtual ones to try things with)';
  return gpus
    .map(
      ({ gpuTypeId, total, free, virtual }) =>
        `${total} ${virtual ? 'virtual ' : ''}${gpuTypeId}, ${free} free`,
    )
    .join('; ');
}
