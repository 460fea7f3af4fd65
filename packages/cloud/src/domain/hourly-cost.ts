import { cpuPrices, gpuPrices } from './catalog/prices.ts';
import type { PriceSettings } from './catalog/prices.ts';
import type { Pod } from './pods/pod-record.ts';
import type { Worker } from './endpoints/worker-record.ts';

/** US dollars for each hour that a pod runs, its disks not counted. */
export function podHourlyCost(
  prices: PriceSettings,
  pod: Pick<
    Pod,
    'gpuTypeId' | 'gpuCount' | 'cpuFlavorId' | 'vcpuCount' | 'cloud' | 'interruptible' | 'bidPerGpu'
  >,
): number {
  const { gpuTypeId, gpuCount, cpuFlavorId, vcpuCount, cloud, interruptible, bidPerGpu } = pod;
  if (gpuTypeId === null) return cpuFlavorId === null ? 0 : cpuPrices(prices, cpuFlavorId).secure * vcpuCount;
  const { secure, community, spot } = gpuPrices(prices, gpuTypeId);
  return (interruptible ? (bidPerGpu ?? spot) : cloud === 'COMMUNITY' ? community : secure) * gpuCount;
}

/** The same of a worker. */
export function workerHourlyCost(
  prices: PriceSettings,
  {
    gpuTypeId,
    gpuCount,
    cpuFlavorId,
    vcpuCount,
  }: Pick<Worker, 'gpuTypeId' | 'gpuCount' | 'cpuFlavorId' | 'vcpuCount'>,
): number {
  if (gpuTypeId !== null) return gpuPrices(prices, gpuTypeId).serverless * gpuCount;
  return cpuFlavorId === null ? 0 : cpuPrices(prices, cpuFlavorId).serverless * vcpuCount;
}

/** A bid below the lowest price of what is wanted finds nothing. */
export function bidFindings(
  prices: PriceSettings,
  gpuTypeIds: readonly string[],
  { bidPerGpu }: Pick<Pod, 'bidPerGpu'>,
): string[] {
  if (bidPerGpu === null || gpuTypeIds.length === 0) return [];
  const lowest = Math.min(...gpuTypeIds.map((id) => gpuPrices(prices, id).spot));
  return bidPerGpu < lowest
    ? [`a bid of ${bidPerGpu} for each GPU is below the lowest price, ${lowest}`]
    : [];
}
