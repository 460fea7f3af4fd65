import { BerthError } from '../support/errors.ts';

const GIGABYTE = 1024 ** 3;
/** Less than this and the machine is full: the kernel would soon choose somebody to end. */
const MIN_FREE_BYTES = GIGABYTE / 4;

export interface MemoryRequest {
  memoryInGb: number;
  /** What comes with a GPU that is only a name is only a number. */
  virtual: boolean;
}

/**
 * Instances share the machine's memory as they share its cores: what counts is what is really
 * free, not what was promised. Only what can never fit, or finds the machine full, is refused.
 */
export function checkMemory(
  { memoryInGb, virtual }: MemoryRequest,
  totalInGb: number,
  freeBytes: number,
): void {
  if (memoryInGb > totalInGb && !virtual)
    throw new BerthError(
      'capacity',
      `this machine has ${totalInGb} GB of memory, ${memoryInGb} GB are asked for`,
    );
  if (freeBytes < MIN_FREE_BYTES)
    throw new BerthError(
      'capacity',
      `this machine is full: ${Math.round(freeBytes / 1024 ** 2)} MB of its memory are free`,
    );
}
