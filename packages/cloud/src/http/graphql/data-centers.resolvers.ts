import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { GpuTypeObject } from './gpus.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { gpuStockFilter, stockStatus } from './gpu-stock.ts';
import type { GpuStockInput } from './gpu-stock.ts';

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

export function dataCenterModule({ catalog }: ResourceServices): GraphqlModule {
  const all = () => catalog.dataCenters().map(serializeDataCenter);
  return {
    sdl,
    publicResolvers: { Query: { dataCenters: all, countryCodes: () => catalog.countryCodes() } },
    authenticatedResolvers: { User: { datacenters: all } },
    fieldResolvers: {
      DataCenter: {
        gpuAvailability: async (
          { id }: { id: string },
          { input = {} }: { input?: GpuStockInput },
          context: RequestContext,
        ) => {
          const request = gpuStockFilter(input);
          const gpus = await context.memoize(`gpus in ${id} ${JSON.stringify(request)}`, () =>
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
        nodeGroupDatacenters: ({ dataCenterIds }: GpuTypeObject) =>
          dataCenterIds.length === 0
            ? []
            : catalog.dataCenters({ ids: dataCenterIds }).map(serializeDataCenter),
      },
    },
  };
}

export function serializeDataCenter({
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
