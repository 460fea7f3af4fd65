export type GpuManufacturer = 'NVIDIA' | 'AMD' | 'UNKNOWN';

/** A model of GPU. Its id is the name that the maker's own driver gives it. */
export interface GpuType {
  id: string;
  /** The short name that people use. */
  name: string;
  /** As advertised; what the driver leaves of it is a little less. */
  memoryInGb: number;
  /** The serverless pool that it belongs to. */
  pool: string | null;
  manufacturer: GpuManufacturer;
}

/** The types that the catalog lists, connected or not. */
export const GPU_TYPES: readonly GpuType[] = [
  amd('AMD Instinct MI300X OAM', 'MI300X', 192),
  nvidia('NVIDIA A100 80GB PCIe', 'A100 PCIe', 80, 'AMPERE_80'),
  nvidia('NVIDIA A100-SXM4-80GB', 'A100 SXM', 80, 'AMPERE_80'),
  nvidia('NVIDIA A30', 'A30', 24),
  nvidia('NVIDIA A40', 'A40', 48, 'AMPERE_48'),
  nvidia('NVIDIA B200', 'B200', 180, 'BLACKWELL_180'),
  nvidia('NVIDIA B300 SXM6 AC', 'B300', 288),
  nvidia('NVIDIA GeForce RTX 3070', 'RTX 3070', 8),
  nvidia('NVIDIA GeForce RTX 3080', 'RTX 3080', 10),
  nvidia('NVIDIA GeForce RTX 3080 Ti', 'RTX 3080 Ti', 12),
  nvidia('NVIDIA GeForce RTX 3090', 'RTX 3090', 24, 'AMPERE_24'),
  nvidia('NVIDIA GeForce RTX 3090 Ti', 'RTX 3090 Ti', 24),
  nvidia('NVIDIA GeForce RTX 4070 Ti', 'RTX 4070 Ti', 12),
  nvidia('NVIDIA GeForce RTX 4080', 'RTX 4080', 16),
  nvidia('NVIDIA GeForce RTX 4080 SUPER', 'RTX 4080 SUPER', 16),
  nvidia('NVIDIA GeForce RTX 4090', 'RTX 4090', 24, 'ADA_24'),
  nvidia('NVIDIA GeForce RTX 5080', 'RTX 5080', 16),
  nvidia('NVIDIA GeForce RTX 5090', 'RTX 5090', 32, 'ADA_32_PRO'),
  nvidia('NVIDIA H100 80GB HBM3', 'H100 SXM', 80, 'ADA_80_PRO'),
  nvidia('NVIDIA H100 NVL', 'H100 NVL', 94, 'ADA_80_PRO'),
  nvidia('NVIDIA H100 PCIe', 'H100 PCIe', 80, 'ADA_80_PRO'),
  nvidia('NVIDIA H200', 'H200 SXM', 141, 'HOPPER_141'),
  nvidia('NVIDIA H200 NVL', 'NVIDIA H200 NVL', 143),
  nvidia('NVIDIA L4', 'L4', 24, 'AMPERE_24'),
  nvidia('NVIDIA L40', 'L40', 48, 'ADA_48_PRO'),
  nvidia('NVIDIA L40S', 'L40S', 48, 'ADA_48_PRO'),
  nvidia('NVIDIA RTX 2000 Ada Generation', 'RTX 2000 Ada', 16, 'AMPERE_16'),
  nvidia('NVIDIA RTX 4000 Ada Generation', 'RTX 4000 Ada', 20, 'AMPERE_16'),
  nvidia('NVIDIA RTX 4000 SFF Ada Generation', 'RTX 4000 Ada SFF', 20),
  nvidia('NVIDIA RTX 5000 Ada Generation', 'RTX 5000 Ada', 32),
  nvidia('NVIDIA RTX 6000 Ada Generation', 'RTX 6000 Ada', 48, 'ADA_48_PRO'),
  nvidia('NVIDIA RTX A2000', 'RTX A2000', 6),
  nvidia('NVIDIA RTX A4000', 'RTX A4000', 16, 'AMPERE_16'),
  nvidia('NVIDIA RTX A4500', 'RTX A4500', 20, 'AMPERE_16'),
  nvidia('NVIDIA RTX A5000', 'RTX A5000', 24, 'AMPERE_24'),
  nvidia('NVIDIA RTX A6000', 'RTX A6000', 48, 'AMPERE_48'),
  nvidia('NVIDIA RTX PRO 4500 Blackwell', 'RTX PRO 4500', 32),
  nvidia('NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition', 'RTX PRO 6000 MaxQ', 96, 'BLACKWELL_96'),
  nvidia('NVIDIA RTX PRO 6000 Blackwell Server Edition', 'RTX PRO 6000', 96, 'BLACKWELL_96'),
  nvidia('NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb', 'PRO 6000 MIG 24GB', 24),
  nvidia('NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 2g.48gb', 'PRO 6000 MIG 48GB', 48),
  nvidia('NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'RTX PRO 6000 WK', 96, 'BLACKWELL_96'),
  nvidia('Tesla V100-PCIE-16GB', 'Tesla V100', 16),
  nvidia('Tesla V100-SXM2-16GB', 'V100 SXM2', 16),
  nvidia('Tesla V100-SXM2-32GB', 'V100 SXM2 32GB', 32),
];

/** Types that existing definitions may name; the catalog lists one only where it is connected. */
export const UNLISTED_GPU_TYPES: readonly GpuType[] = [
  nvidia('Tesla T4', 'Tesla T4', 16),
  nvidia('Tesla V100-FHHL-16GB', 'V100 FHHL', 16),
  nvidia('Tesla V100-PCIE-32GB', 'Tesla V100 32GB', 32),
];

/**
 * Ids in use elsewhere for a type that has another name. Doubled spaces, also in use, need no entry: they are
 * never told apart.
 */
const GPU_ID_ALIASES: ReadonlyMap<string, string> = new Map([
  ['NVIDIA A5000 Ada', 'NVIDIA RTX 5000 Ada Generation'],
  ['NVIDIA GeForce RTX 3080TI', 'NVIDIA GeForce RTX 3080 Ti'],
  ['NVIDIA RTX A30', 'NVIDIA A30'],
]);

const BY_ID: ReadonlyMap<string, GpuType> = new Map(
  [...GPU_TYPES, ...UNLISTED_GPU_TYPES].map((type) => [type.id, type]),
);

/** The type behind an id, in any spelling that is accepted. */
export function findGpuType(id: string): GpuType | undefined {
  return BY_ID.get(id) ?? findSpelling(id);
}

function findSpelling(id: string): GpuType | undefined {
  const spelling = id.trim().replaceAll(/\s+/g, ' ');
  return BY_ID.get(GPU_ID_ALIASES.get(spelling) ?? spelling);
}

/**
 * A GPU that is connected but in no list here: it is a type of its own, under the name that its driver gives
 * it.
 */
export function unlistedGpuType(id: string, memoryInGb: number): GpuType {
  const name = id.replace(/^(NVIDIA|AMD)\s+(GeForce\s+)?/, '');
  return { id, name, memoryInGb, pool: null, manufacturer: /^(AMD|Radeon)\b/i.test(id) ? 'AMD' : 'NVIDIA' };
}

function nvidia(id: string, name: string, memoryInGb: number, pool: string | null = null): GpuType {
  return { id, name, memoryInGb, pool, manufacturer: 'NVIDIA' };
}

function amd(id: string, name: string, memoryInGb: number): GpuType {
  return { id, name, memoryInGb, pool: null, manufacturer: 'AMD' };
}
