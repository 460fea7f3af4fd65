import { isMapping, type SettingType } from './setting-type.ts';

/** US dollars for a GPU and hour: one number for every kind of use, or one for each. */
export type GpuPrice = number | Partial<Record<(typeof GPU_USES)[number], number>>;
/** US dollars for a vCPU and hour, likewise. */
export type CpuPrice = number | Partial<Record<(typeof CPU_USES)[number], number>>;

export interface Prices {
  gpu: Record<string, GpuPrice>;
  cpu: Record<string, CpuPrice>;
  /** US dollars for a GB and month. */
  disk: Partial<Record<(typeof DISK_TYPES)[number], number>>;
}

const GPU_USES = ['secure', 'community', 'serverless', 'spot'] as const;
const CPU_USES = ['secure', 'serverless'] as const;
/**
 * Prices of pods and workers while they run, of stopped pods, and of network volumes by tier. The part of a
 * standard volume above 1 TB may cost less.
 */
const DISK_TYPES = [
  'container',
  'volume',
  'stoppedVolume',
  'networkVolume',
  'networkVolumeAbove1TB',
  'highPerformanceVolume',
] as const;

export const noPrices: Prices = { gpu: {}, cpu: {}, disk: {} };

/** Higher prices are mistakes; below this limit sums stay far from what a database can count. */
const MAX_PRICE = 1_000;

function isPrice(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= MAX_PRICE;
}

function arePrices(value: unknown, names: readonly string[]): boolean {
  return (
    isMapping(value) && Object.entries(value).every(([name, price]) => names.includes(name) && isPrice(price))
  );
}

function isSection(section: string, value: unknown): boolean {
  if (section === 'disk') return arePrices(value, DISK_TYPES);
  const uses = section === 'gpu' ? GPU_USES : section === 'cpu' ? CPU_USES : undefined;
  return (
    uses !== undefined &&
    isMapping(value) &&
    Object.values(value).every((price) => isPrice(price) || arePrices(price, uses))
  );
}

/** Nested, and therefore from the file alone. */
export function pricesType(): SettingType<Prices> {
  return {
    allowed:
      `sections gpu, cpu and disk, with prices from 0 to ${MAX_PRICE}: of a GPU one number or some ` +
      `of ${GPU_USES.join(', ')}; of a CPU one number or some of ${CPU_USES.join(', ')}; of disks ` +
      `some of ${DISK_TYPES.join(', ')}`,
    fromFile: (value) => {
      if (!isMapping(value)) return undefined;
      const given = Object.entries(value).filter(([, prices]) => prices !== null);
      if (!given.every(([section, prices]) => isSection(section, prices))) return undefined;
      return { ...noPrices, ...Object.fromEntries(given) };
    },
    toYaml: (value) => JSON.stringify(value),
  };
}
