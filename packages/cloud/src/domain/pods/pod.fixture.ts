import { POD_DEFAULTS } from './pod-input.ts';
import type { Pod } from './pod-record.ts';

/** A CPU pod that waits for its first start, for tests. */
export const samplePod: Pod = {
  ...POD_DEFAULTS,
  id: 'p',
  accountId: 'a',
  name: 'pod',
  compute: 'CPU',
  image: 'local/shell',
  dataCenterId: 'LOCAL-1',
  cpuFlavorId: 'cpu3c',
  vcpuCount: 2,
  memoryInGb: 4,
  createdAt: 1,
  updatedAt: 1,
  statusChangedAt: 1,
};
