import type { CheckResult } from '../support/check-result.ts';
import type { EngineCheck } from './engine-check.ts';
import { gpuCapacities } from './machine.ts';
import { findNvidiaGpus, type NvidiaSmiResult } from './nvidia-smi.ts';

const CHECK = 'gpus';
/** Values of the setting `gpus` with which there are no virtual ones. */
const WITHOUT_VIRTUAL = ['', 'auto', 'none'];

/** Berth runs without GPUs, so only a driver that does not work fails the check. */
export const checkGpus: EngineCheck = async (env) =>
  gpuCheckResult(await findNvidiaGpus(), !WITHOUT_VIRTUAL.includes(env['BERTH_GPUS'] ?? ''));

export function gpuCheckResult(result: NvidiaSmiResult, hasVirtual: boolean): CheckResult {
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
    return {
      check: CHECK,
      ok: true,
      found: hasVirtual
        ? 'none but virtual ones (gpus): what asks for a GPU runs without one'
        : 'none: what asks for a GPU waits or is refused',
    };
  const types = gpuCapacities(result).map(
    ({ gpuTypeId, total, memoryInGb }) => `${total} x ${gpuTypeId} (${memoryInGb} GB)`,
  );
  return {
    check: CHECK,
    ok: true,
    found: `${types.join(', ')}; driver ${gpus[0]?.driverVersion}, CUDA ${cudaVersion ?? 'unknown'}`,
  };
}
