import type { Caller } from '../domain/caller.ts';
import type { ResourceUsage, UsageTotal } from '../domain/usage-records.ts';

export const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();
export const caller = (accountId: string): Caller => ({
  accountId,
  keyId: null,
  operator: false,
  fullAccess: true,
  interface: 'rest-v2',
  requestId: '',
});
export const use: ResourceUsage = {
  unitId: 'u',
  accountId: 'a',
  kind: 'pod',
  resourceId: 'u',
  gpuTypeId: 'G',
  cpuFlavorId: null,
  tier: null,
  dataCenterId: 'D',
  image: 'i',
  templateId: 't',
  rates: { gpu: 400_000_000, cpu: 0, disk: 1_000, fastDisk: 0 },
  diskInGb: 10,
  isRunning: true,
};
/** What may be compared: the disk space is reported beside the money. */
export const counted = (tallies: readonly UsageTotal[]): [string, object][] =>
  tallies
    .filter(({ seconds, amounts }) => seconds > 0 || Object.values(amounts).some((amount) => amount > 0n))
    .map(({ start, group, amounts, seconds }) => [`${start} ${group}`, { amounts, seconds }]);
export const byKey = (entries: [string, object][]): [string, object][] =>
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
