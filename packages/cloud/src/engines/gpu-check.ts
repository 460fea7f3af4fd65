import type { CheckResult } from '../support/check-result.ts';
import type { EngineCheck } from './engine-check.ts';
import { gpuCapacities } from './machine.ts';
import { findNvidiaGpus, type NvidiaSmiResult } from './nvidia-smi.ts';

const CHECK = 'gpus';

/** Berth runs without GPUs, so only a driver that does not work fails the check. */
export const checkGpus: EngineCheck = async () => gpuCheckResult(await findNvidiaGpus());

export function gpuCheckResult(result: NvidiaSmiResult): CheckResult {
  const { gpus, cudaVersion, problem } = result;
  if (problem !== null)
    return {
      check: CHECK,
      ok: false,
      found: `nvidia-smi finds no GPU: ${problem}`,
      remedy:
        'make "nvidia-smi" list the GPUs of this machine, or remove it; GPUs are looked for at the start',
    };
  if (gpus.length === 0)
    return { check: CHECK, ok: true, found: 'none: what asks for a GPU waits or is refused' };
  const types = gpuCapacities(result).map(
    ({ gpuTypeId, total, memoryInGb }) => `${total} x ${gpuTypeId} (${memoryInGb} GB)`,
  );
  return {
    check: CHECK,
    ok: true,
    found: `${types.join(', ')}; driver ${gpus[0]?.driverVersion}, CUDA ${cudaVersion ?? 'unknown'}`,
  };
}
