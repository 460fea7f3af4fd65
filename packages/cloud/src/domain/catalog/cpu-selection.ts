import type { CpuChoice } from '../records.ts';
import { ruleError } from '../../support/errors.ts';
import type { CpuFlavor } from './cpu-flavors.ts';
import { CPU_FLAVORS, findCpuFlavor } from './cpu-flavors.ts';
import type { CatalogSnapshot } from './catalog-snapshot.ts';
import { unknownValueMessage } from './catalog-snapshot.ts';
import { MIN_VCPU_COUNT } from '../limits.ts';

/** What a worker gets by default. */
export const DEFAULT_VCPU_COUNT = 2;

/** The CPU machine of the CLI and of GraphQL pods that name none: the smallest of its flavour. */
export const DEFAULT_CPU_CHOICE: CpuChoice = { id: 'cpu3c', vcpuCount: DEFAULT_VCPU_COUNT };

/** Memory in GB that comes with a choice. */
export function memoryInGbOf({ id, vcpuCount }: CpuChoice): number {
  return vcpuCount * (findCpuFlavor(id)?.ramGbPerVcpu ?? 0);
}

/** `cpu3c-4-8`: the flavour, its vCPUs, its GB of memory. */
export function cpuInstanceId(choice: CpuChoice): string {
  return `${choice.id}-${choice.vcpuCount}-${memoryInGbOf(choice)}`;
}

/** The flavour, the vCPUs and the GB of memory in it. */
export const CPU_INSTANCE_ID = /^([a-z0-9]+)-(\d{1,4})-(\d{1,5})$/;

export function parseCpuInstanceId(text: string): CpuChoice {
  const [, id = '', vcpus = ''] = CPU_INSTANCE_ID.exec(text) ?? [];
  const choice: CpuChoice = { id, vcpuCount: Number(vcpus) };
  if (id === '')
    throw ruleError(
      `instance id ${JSON.stringify(text.slice(0, 64))} must be <flavour>-<vCPUs>-<GB of memory>, for ` +
        'example cpu3g-4-16',
    );
  if (findCpuFlavor(id) !== undefined && cpuInstanceId(choice) !== text)
    throw ruleError(
      `instance id ${JSON.stringify(text)} has another amount of memory than comes with it: ${cpuInstanceId(choice)}`,
    );
  return choice;
}

/** Where no flavour is named, each that runs workers will do. */
export function anyCpuFlavor(vcpuCount = DEFAULT_VCPU_COUNT): CpuChoice[] {
  return CPU_FLAVORS.filter(({ products }) => products.includes('SERVERLESS')).map(({ id }) => ({
    id,
    vcpuCount,
  }));
}

export function cpuFindings(choices: readonly CpuChoice[], { cpuFlavors }: CatalogSnapshot): string[] {
  if (choices.length === 0) return ['a CPU endpoint needs at least one CPU flavour'];
  const seen = new Set<string>();
  return choices.flatMap((choice) => {
    const flavor = cpuFlavors.find(({ id }) => id === choice.id);
    if (flavor === undefined)
      return [
        unknownValueMessage(
          'CPU flavour',
          choice.id,
          cpuFlavors.map(({ id }) => id),
        ),
      ];
    const twice = seen.has(cpuInstanceId(choice));
    seen.add(cpuInstanceId(choice));
    return [
      ...vcpuFindings(choice, flavor),
      ...(twice ? [`CPU flavour ${choice.id} with ${choice.vcpuCount} vCPUs is listed twice`] : []),
    ];
  });
}

/** Existing definitions also ask for a single vCPU. */
function vcpuFindings({ id, vcpuCount }: CpuChoice, { maxVcpu }: CpuFlavor): string[] {
  const fits =
    Number.isInteger(vcpuCount) &&
    vcpuCount >= MIN_VCPU_COUNT &&
    vcpuCount <= maxVcpu &&
    Number.isInteger(Math.log2(vcpuCount));
  return fits ? [] : [`vcpuCount of ${id} must be a power of two of at most ${maxVcpu}, got ${vcpuCount}`];
}
