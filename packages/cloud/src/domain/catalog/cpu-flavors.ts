import type { CpuProduct } from './products.ts';

/** A shape of CPU machine: the caller picks how many vCPUs, the flavour says what comes with each. */
export interface CpuFlavor {
  id: string;
  name: string;
  group: 'Gen 3' | 'Gen 5';
  ramGbPerVcpu: number;
  minVcpu: number;
  maxVcpu: number;
  /** The most container disk for each vCPU. */
  diskGbPerVcpu: number;
  products: readonly CpuProduct[];
}

const MIN_VCPU = 2;
const MAX_VCPU = 32;
const DISK_GB_PER_VCPU = { 'Gen 3': 10, 'Gen 5': 15 } as const;

export const CPU_FLAVORS: readonly CpuFlavor[] = [
  flavor('cpu3c', 'Compute-Optimized', 'Gen 3', 2, ['POD', 'SERVERLESS']),
  flavor('cpu3g', 'General Purpose', 'Gen 3', 4, ['POD', 'SERVERLESS']),
  flavor('cpu3m', 'Memory-Optimized', 'Gen 3', 8, ['POD']),
  flavor('cpu5c', 'Compute-Optimized', 'Gen 5', 2, ['POD', 'SERVERLESS']),
  flavor('cpu5g', 'General Purpose', 'Gen 5', 4, ['POD', 'SERVERLESS']),
  flavor('cpu5m', 'Memory-Optimized', 'Gen 5', 8, ['POD']),
];

export function findCpuFlavor(id: string): CpuFlavor | undefined {
  return CPU_FLAVORS.find((known) => known.id === id);
}

function flavor(
  id: string,
  name: string,
  group: CpuFlavor['group'],
  ramGbPerVcpu: number,
  products: CpuProduct[],
): CpuFlavor {
  return {
    id,
    name,
    group,
    ramGbPerVcpu,
    minVcpu: MIN_VCPU,
    maxVcpu: MAX_VCPU,
    diskGbPerVcpu: DISK_GB_PER_VCPU[group],
    products,
  };
}
