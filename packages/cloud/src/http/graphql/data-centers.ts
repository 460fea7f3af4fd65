import type { DataCenterDefinition } from '../../resources/catalog/data-centers.ts';
import type { Resources } from '../../resources/resources.ts';
import type { Asking } from './asking.ts';
import type { ShownGpu } from './gpus.ts';
import type { Part } from './part.ts';
import { gpuRequest, stockStatus } from './stock.ts';
import type { GpuStockInput } from './stock.ts';

const sdl = `
  "A named place to run things"
  type DataCenter {
    id: String
    name: String
    "The country's code, or what the place is called"
    location: String
    listed: Boolean
    storageSupport: Boolean
    compliance: [Compliance]
    globalNetwork: Boolean
    gpuAvailability(input: GpuAvailabilityInput): [GpuAvailability]
  }
  input GpuAvailabilityInput {
    gpuCount: Int
    minDisk: Int
    minMemoryInGb: Int
    minVcpuCount: Int
    secureCloud: Boolean
    allowedCudaVersions: [String]
    includeAiApi: Boolean
  }
  type GpuAvailability {
    id: String
    gpuTypeId: String
    displayName: String
    gpuTypeDisplayName: String
    "High, Medium, Low or null"
    stockStatus: String
    available: Boolean
    gpuType: GpuType
  }

  extend type Query {
    dataCenters: [DataCenter]
    countryCodes: [String]
  }
  extend type User { datacenters: [DataCenter] }
`;

export function dataCenterPart({ catalog }: Resources): Part {
  const all = () => catalog.dataCenters().map(showDataCenter);
  return {
    sdl,
    open: { Query: { dataCenters: all, countryCodes: () => catalog.countryCodes() } },
    keyed: { User: { datacenters: all } },
    fields: {
      DataCenter: {
        gpuAvailability: async (
          { id }: { id: string },
          { input = {} }: { input?: GpuStockInput },
          asking: Asking,
        ) => {
          const request = gpuRequest(input);
          const gpus = await asking.once(`gpus in ${id} ${JSON.stringify(request)}`, () =>
            catalog.gpusIn(id, request),
          );
          return gpus.map((gpu) => ({
            id: gpu.id,
            gpuTypeId: gpu.id,
            displayName: gpu.name,
            gpuTypeDisplayName: gpu.name,
            stockStatus: stockStatus(gpu.availability),
            available: gpu.availability !== 'NONE',
          }));
        },
      },
      GpuType: {
        nodeGroupDatacenters: ({ dataCenterIds }: ShownGpu) =>
          dataCenterIds.length === 0 ? [] : catalog.dataCenters({ ids: dataCenterIds }).map(showDataCenter),
      },
    },
  };
}

export function showDataCenter({
  id,
  name,
  countryCode,
  networkVolumeTypes,
  compliance,
  globalNetwork,
}: DataCenterDefinition) {
  return {
    id,
    name,
    location: countryCode ?? name,
    listed: true,
    storageSupport: networkVolumeTypes.length > 0,
    compliance,
    globalNetwork,
  };
}
