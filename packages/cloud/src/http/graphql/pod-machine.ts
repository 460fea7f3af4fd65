import { hostCpusOf } from '../../resources/catalog/host-cpus.ts';
import type { Resources } from '../../resources/resources.ts';
import type { Pod } from '../../store/pods.ts';
import type { Asking } from './asking.ts';
import { showFlavor } from './cpus.ts';
import { showGpu } from './gpus.ts';
import type { Part } from './part.ts';

const sdl = `
  extend type Pod {
    cpuFlavor: CpuFlavor
    "Nobody sells any here"
    savingsPlans: [SavingsPlan]
  }
  extend type PodMachineInfo {
    gpuType: GpuType
    "How many of its GPUs are free"
    gpuAvailable: Int
    minPodGpuCount: Int
    cpuTypeId: String
    cpuType: CpuType
    vcpuTotal: Int
    vcpuReserved: Int
    "GB"
    memoryTotal: Int
    memoryReserved: Int
    diskMBps: Int
    maxDownloadSpeedMbps: Int
    maxUploadSpeedMbps: Int
    maintenanceStart: DateTime
    maintenanceEnd: DateTime
    maintenanceNote: String
    note: String
    runpodIp: String
  }
  "A promise to rent for long, for less"
  type SavingsPlan {
    id: String
    podId: String
    gpuTypeId: String
    gpuType: GpuType
    pod: Pod
    savingsPlanType: String
    startTime: DateTime
    endTime: DateTime
    costPerHr: Float
    upfrontCost: Float
    planLength: String
  }
  extend type User {
    savingsPlans: [SavingsPlan]
    "Null: nothing is sold at a discount"
    serverlessDiscount: Discount
  }
  type Discount { type: String discountFactor: Float expirationDate: DateTime activeDiscountFactor: Float activeWorkers: Int }
`;

/** The machine of a pod, or of a worker: both say where they are. */
interface Machine {
  dataCenterId: string | null;
  gpuTypeId: string | null;
}

/** What the machine behind a pod is like, asked of its engine. */
export function podMachinePart({ catalog }: Resources): Part {
  const capacityOf = async ({ dataCenterId }: Machine, asking: Asking) =>
    dataCenterId === null
      ? undefined
      : asking.once(`capacity ${dataCenterId}`, () => catalog.capacity(dataCenterId));
  const cpuOf = async (machine: Machine, asking: Asking) => {
    const capacity = await capacityOf(machine, asking);
    return capacity === undefined ? undefined : hostCpusOf([capacity])[0];
  };
  return {
    sdl,
    keyed: { User: { savingsPlans: () => [], serverlessDiscount: () => null } },
    fields: {
      Pod: {
        cpuFlavor: async ({ kept }: { kept?: Pod }) =>
          typeof kept?.cpuFlavorId === 'string'
            ? showFlavor((await catalog.cpu(kept.cpuFlavorId)).flavor)
            : null,
        savingsPlans: () => [],
      },
      PodMachineInfo: {
        gpuType: async ({ gpuTypeId }: Machine, _args: unknown, asking) => {
          const offer = (await asking.once('gpus {}', () => catalog.gpus({}))).find(
            ({ type }) => type.id === gpuTypeId,
          );
          return offer === undefined ? null : showGpu(offer);
        },
        gpuAvailable: async (machine: Machine, _args: unknown, asking) =>
          ((await capacityOf(machine, asking))?.gpus ?? [])
            .filter(({ gpuTypeId }) => gpuTypeId === machine.gpuTypeId)
            .reduce((sum, { free }) => sum + free, 0),
        minPodGpuCount: ({ gpuTypeId }: Machine) => (gpuTypeId === null || gpuTypeId === 'unknown' ? 0 : 1),
        cpuTypeId: async (machine: Machine, _args: unknown, asking) =>
          (await cpuOf(machine, asking))?.id ?? null,
        cpuType: async (machine: Machine, _args: unknown, asking) => {
          const cpu = await cpuOf(machine, asking);
          return cpu === undefined ? null : { ...cpu, displayName: cpu.name, groupId: null };
        },
        vcpuTotal: async (machine: Machine, _args: unknown, asking) =>
          (await capacityOf(machine, asking))?.cpu.threads ?? null,
        memoryTotal: async (machine: Machine, _args: unknown, asking) =>
          whole((await capacityOf(machine, asking))?.memoryInGb),
        memoryReserved: async (machine: Machine, _args: unknown, asking) => {
          const capacity = await capacityOf(machine, asking);
          return capacity?.freeMemoryInGb === undefined
            ? null
            : whole(capacity.memoryInGb - capacity.freeMemoryInGb);
        },
      },
    },
  };
}

function whole(number: number | undefined): number | null {
  return number === undefined ? null : Math.round(number);
}
