import { hostCpusOf } from '../../resources/catalog/host-cpus.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { RequestContext } from './graphql-request-context.ts';
import { serializeCpuFlavor } from './cpus.resolvers.ts';
import { serializeGpuType } from './gpus.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

const sdl = `
  extend type Pod {
    cpuFlavor: CpuFlavor
    "Nobody sells any here"
    savingsPlans: [SavingsPlan]
  }
  extend type PodMachineInfo {
    gpuType: GpuType
    "Berth only: its GPUs are only names, without hardware"
    gpuVirtual: Boolean
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
  type Discount {
    type: String discountFactor: Float expirationDate: DateTime activeDiscountFactor: Float
    activeWorkers: Int
  }
`;

/** The machine of a pod, or of a worker: both say where they are. */
interface Machine {
  dataCenterId: string | null;
  gpuTypeId: string | null;
}

/** What the machine behind a pod is like, asked of its engine. */
export function podMachineModule({ catalog }: ResourceServices): GraphqlModule {
  const capacityOf = async ({ dataCenterId }: Machine, context: RequestContext) =>
    dataCenterId === null
      ? undefined
      : context.memoize(`capacity ${dataCenterId}`, () => catalog.capacity(dataCenterId));
  const cpuOf = async (machine: Machine, context: RequestContext) => {
    const capacity = await capacityOf(machine, context);
    return capacity === undefined ? undefined : hostCpusOf([capacity])[0];
  };
  return {
    sdl,
    authenticatedResolvers: { User: { savingsPlans: () => [], serverlessDiscount: () => null } },
    fieldResolvers: {
      Pod: {
        cpuFlavor: async ({ record }: { record?: Pod }) =>
          typeof record?.cpuFlavorId === 'string'
            ? serializeCpuFlavor((await catalog.cpu(record.cpuFlavorId)).flavor)
            : null,
        savingsPlans: () => [],
      },
      PodMachineInfo: {
        gpuType: async ({ gpuTypeId }: Machine, _args: unknown, context) => {
          const offer = (await context.memoize('gpus {}', () => catalog.gpus({}))).find(
            ({ type }) => type.id === gpuTypeId,
          );
          return offer === undefined ? null : serializeGpuType(offer);
        },
        gpuVirtual: ({ dataCenterId, gpuTypeId }: Machine) =>
          dataCenterId !== null && gpuTypeId !== null && catalog.isVirtualGpu(dataCenterId, gpuTypeId),
        gpuAvailable: async (machine: Machine, _args: unknown, context) =>
          ((await capacityOf(machine, context))?.gpus ?? [])
            .filter(({ gpuTypeId }) => gpuTypeId === machine.gpuTypeId)
            .reduce((sum, { free }) => sum + free, 0),
        minPodGpuCount: ({ gpuTypeId }: Machine) => (gpuTypeId === null || gpuTypeId === 'unknown' ? 0 : 1),
        cpuTypeId: async (machine: Machine, _args: unknown, context) =>
          (await cpuOf(machine, context))?.id ?? null,
        cpuType: async (machine: Machine, _args: unknown, context) => {
          const cpu = await cpuOf(machine, context);
          return cpu === undefined ? null : { ...cpu, displayName: cpu.name, groupId: null };
        },
        vcpuTotal: async (machine: Machine, _args: unknown, context) =>
          (await capacityOf(machine, context))?.cpu.threads ?? null,
        memoryTotal: async (machine: Machine, _args: unknown, context) =>
          whole((await capacityOf(machine, context))?.memoryInGb),
        memoryReserved: async (machine: Machine, _args: unknown, context) => {
          const capacity = await capacityOf(machine, context);
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
