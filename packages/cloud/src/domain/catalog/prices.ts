/** US dollars for one GPU and hour. */
export interface GpuPrices {
  secure: number;
  community: number;
  serverless: number;
  /** For a pod that may be stopped at any time. */
  spot: number;
}

/** US dollars for one vCPU and hour. */
export interface CpuPrices {
  secure: number;
  serverless: number;
}

/**
 * What the operator asks for, by GPU type and by CPU flavour. One number is the price of every
 * kind of use. What is not named costs nothing.
 */
export interface PriceSettings {
  gpu: Readonly<Record<string, number | Partial<GpuPrices>>>;
  cpu: Readonly<Record<string, number | Partial<CpuPrices>>>;
}

export const ZERO_PRICES: PriceSettings = { gpu: {}, cpu: {} };

export function gpuPrices(settings: PriceSettings, gpuTypeId: string): GpuPrices {
  const price = settings.gpu[gpuTypeId] ?? 0;
  if (typeof price === 'number') return { secure: price, community: price, serverless: price, spot: price };
  return { secure: 0, community: 0, serverless: 0, spot: 0, ...price };
}

export function cpuPrices(settings: PriceSettings, flavorId: string): CpuPrices {
  const price = settings.cpu[flavorId] ?? 0;
  if (typeof price === 'number') return { secure: price, serverless: price };
  return { secure: 0, serverless: 0, ...price };
}
