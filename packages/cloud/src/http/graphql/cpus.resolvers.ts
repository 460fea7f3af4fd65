import { findCpuFlavor } from '../../domain/catalog/cpu-flavors.ts';
import type { CpuFlavor } from '../../domain/catalog/cpu-flavors.ts';
import type { CpuFilter } from '../../resources/catalog/catalog.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { ruleError } from '../../support/errors.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { stockStatus } from './gpu-stock.ts';
import { CPU_INSTANCE_ID } from '../../domain/catalog/cpu-selection.ts';

const sdl = `
  input CpuFlavorInput { id: String }
  "A shape of CPU machine"
  type CpuFlavor {
    id: String
    groupId: String
    groupName: String
    displayName: String
    minVcpu: Int
    maxVcpu: Int
    vcpuBurstable: Boolean
    "GB of memory for each vCPU"
    ramMultiplier: Float
    "GB of container disk for each vCPU"
    diskLimitPerVcpu: Int
    specifics(input: SpecificsInput): Specifics
  }
  input SpecificsInput {
    "Such as cpu3c-2-4: flavour, vCPUs and GB of memory; default: the smallest"
    instanceId: String
    dataCenterId: String
  }
  "Prices are US dollars for this machine and hour"
  type Specifics {
    "High, Medium, Low or null"
    stockStatus: String
    securePrice: Float
    slsPrice: Float
  }
  "A processor that machines here are built with"
  type CpuType { id: String displayName: String manufacturer: String cores: Int threadsPerCore: Int groupId: String }

  extend type Query {
    cpuFlavors(input: CpuFlavorInput): [CpuFlavor]
    cpuTypes: [CpuType]
  }
`;

type CpuFlavorObject = ReturnType<typeof serializeCpuFlavor>;

export function cpuModule({ catalog }: ResourceServices): GraphqlModule {
  return {
    sdl,
    publicResolvers: {
      Query: {
        cpuFlavors: async ({ input = {} }: { input?: { id?: string } }) =>
          (await catalog.cpus())
            .map(({ flavor }) => serializeCpuFlavor(flavor))
            .filter(({ id }) => input.id === undefined || id === input.id),
        cpuTypes: async () =>
          (await catalog.hostCpus()).map(({ name, ...same }) => ({
            ...same,
            displayName: name,
            groupId: null,
          })),
      },
    },
    fieldResolvers: {
      CpuFlavor: {
        specifics: async (
          shown: CpuFlavorObject,
          { input = {} }: { input?: { instanceId?: string; dataCenterId?: string } },
          context: RequestContext,
        ) => {
          const vcpuCount = input.instanceId === undefined ? shown.minVcpu : vcpusOf(input.instanceId, shown);
          if (vcpuCount === undefined) return null;
          const filter: CpuFilter = {
            vcpuCount,
            ...(input.dataCenterId !== undefined && { within: { ids: [input.dataCenterId] } }),
          };
          const offers = await context.memoize(`cpus ${JSON.stringify(filter)}`, () => catalog.cpus(filter));
          const offer = offers.find(({ flavor }) => flavor.id === shown.id);
          if (offer === undefined) return null;
          return {
            stockStatus: stockStatus(offer.availability),
            securePrice: offer.prices.secure * vcpuCount,
            slsPrice: offer.prices.serverless * vcpuCount,
          };
        },
      },
    },
  };
}

/** Undefined where it is no instance of this flavour: every flavour is asked for the same one. */
function vcpusOf(instanceId: string, { id, ramMultiplier }: CpuFlavorObject): number | undefined {
  const [, flavorId, vcpus, memory] = CPU_INSTANCE_ID.exec(instanceId) ?? [];
  if (flavorId === undefined || findCpuFlavor(flavorId) === undefined)
    throw ruleError('instanceId must name a flavour, its vCPUs and its GB of memory, for example cpu3c-2-4');
  return flavorId === id && Number(vcpus) * ramMultiplier === Number(memory) ? Number(vcpus) : undefined;
}

export function serializeCpuFlavor(flavor: CpuFlavor) {
  return {
    id: flavor.id,
    groupId: flavor.group,
    groupName: flavor.group,
    displayName: flavor.name,
    minVcpu: flavor.minVcpu,
    maxVcpu: flavor.maxVcpu,
    // Cores are shared by all that runs on a machine.
    vcpuBurstable: true,
    ramMultiplier: flavor.ramGbPerVcpu,
    diskLimitPerVcpu: flavor.diskGbPerVcpu,
  };
}
