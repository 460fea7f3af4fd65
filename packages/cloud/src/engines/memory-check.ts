import { BerthError } from '../support/errors.ts';

const GIGABYTE = 1024 ** 3;
/** Below this the machine counts as full: the kernel would soon kill a process. */
const MIN_FREE_BYTES = GIGABYTE / 4;

export interface MemoryRequest {
  memoryInGb: number;
  /** With a virtual GPU the requested memory is not checked. */
  virtual: boolean;
}

/**
 * Memory is overcommitted, like cores: the check uses free memory, not the memory requested by other instances.
 * A request is refused only if it can never fit or the machine is full.
 */
export function checkMemory(
  { memoryInGb, virtual }: MemoryRequest,
  totalInGb: number,
  freeBytes: number,
): void {
  if (memoryInGb > totalInGb && !virtual)
    throw new BerthError('capacity', `needs ${memoryInGb} GB of memory; this machine has ${totalInGb} GB`);
  if (freeBytes < MIN_FREE_BYTES)
    throw new BerthError(
      'capacity',
      `only ${Math.round(freeBytes / 1024 ** 2)} MB of memory are free on this machine; stop an instance`,
    );
}
