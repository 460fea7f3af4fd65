import type { GpuFilter } from '../../resources/catalog/catalog.ts';
import type { GpuOffer } from '../../resources/catalog/gpu-offer.ts';
import { findGpuType } from '../../domain/catalog/gpu-types.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { gpuStockFilter, stockStatus } from './gpu-stock.ts';
import type { GpuStockInput } from './gpu-stock.ts';
import { MEMORY_PER_GPU_GB, VCPU_PER_GPU } from '../../domain/placement/hardware-shares.ts';

const sdl = `
  input GpuTypeFilter { id: String ids: [String] cluster: Boolean }
  "A model of GPU, connected or not. Prices are US dollars for one GPU and hour"
  type GpuType {
    id: String
    displayName: String
    manufacturer: String
    memoryInGb: Int
    cudaCores: Int
    secureCloud: Boolean
    communityCloud: Boolean
    securePrice: Float
    communityPrice: Float
    secureSpotPrice: Float
    communitySpotPrice: Float
    clusterPrice: Float
    oneWeekPrice: Float
    oneMonthPrice: Float
    threeMonthPrice: Float
    sixMonthPrice: Float
    maxGpuCount: Int
    maxGpuCountCommunityCloud: Int
    maxGpuCountSecureCloud: Int
    minPodGpuCount: Int
    nodeGroupGpuSizes: [Int]
    nodeGroupDatacenters: [DataCenter]
    throughput: Int
    "No such GPU is connected: it is virtual, to try definitions"
    virtual: Boolean
    lowestPrice(input: GpuLowestPriceInput): LowestPrice
  }
  input GpuLowestPriceInput {
    gpuCount: Int
    dataCenterId: String
    countryCode: String
    secureCloud: Boolean
    includeAiApi: Boolean
    minDisk: Int
    totalDisk: Int
    minMemoryInGb: Int
    minVcpuCount: Int
    minDownload: Int
    minUpload: Int
    supportPublicIp: Boolean
    cudaVersion: String
    minCudaVersion: String
    allowedCudaVersions: [String]
    compliance: [Compliance]
    globalNetwork: Boolean
  }
  "What can be had now. Prices and stock are null where there is none"
  type LowestPrice {
    gpuName: String
    gpuTypeId: String
    minimumBidPrice: Float
    uninterruptablePrice: Float
    minMemory: Int
    minVcpu: Int
    minDisk: Int
    minDownload: Int
    minUpload: Int
    "High, Medium, Low or null"
    stockStatus: String
    rentalPercentage: Float
    rentedCount: Int
    totalCount: Int
    countryCode: String
    supportPublicIp: Boolean
    compliance: [Compliance]
    maxUnreservedGpuCount: Int
    availableGpuCounts: [Int]
    gpuTypeCudaVersions: [GpuTypeCudaVersion]
  }
  enum CudaAvailability { AVAILABLE UNAVAILABLE }
  type GpuTypeCudaVersion { cudaVersion: String availability: CudaAvailability }
  "GPU types of one class, for endpoints that take whichever is free"
  type ServerlessGpuPool { id: String displayName: String gpuTypeIds: [String] }

  extend type Query {
    gpuTypes(input: GpuTypeFilter): [GpuType]
    serverlessGpuPools: [ServerlessGpuPool]
  }
`;

interface LowestPriceInput extends GpuStockInput {
  dataCenterId?: string;
  countryCode?: string;
  secureCloud?: boolean;
  compliance?: string[];
  globalNetwork?: boolean;
}

export type GpuTypeObject = ReturnType<typeof serializeGpuType>;

export function gpuModule({ catalog }: ResourceServices): GraphqlModule {
  const offersFor = (filter: GpuFilter, context: RequestContext) =>
    context.memoize(`gpus ${JSON.stringify(filter)}`, () => catalog.gpus(filter));

  return {
    sdl,
    publicResolvers: {
      Query: {
        gpuTypes: async (
          { input = {} }: { input?: { id?: string; ids?: string[]; cluster?: boolean } },
          context: RequestContext,
        ) => {
          const ids = [...(input.ids ?? []), ...(input.id === undefined ? [] : [input.id])].map(
            (id) => findGpuType(id)?.id ?? id,
          );
          return (await offersFor({}, context))
            .filter(
              ({ type, maxCount }) =>
                (ids.length === 0 || ids.includes(type.id)) && (input.cluster !== true || maxCount > 0),
            )
            .map(serializeGpuType);
        },
        serverlessGpuPools: () =>
          catalog.pools().map(({ id, label, gpuTypeIds }) => ({ id, displayName: label, gpuTypeIds })),
      },
    },
    fieldResolvers: {
      GpuType: {
        lowestPrice: async (
          gpu: GpuTypeObject,
          { input = {} }: { input?: LowestPriceInput },
          context: RequestContext,
        ) => {
          const offers = await offersFor(lowestPriceFilter(input), context);
          return serializeLowestPrice(
            gpu,
            offers.find(({ type }) => type.id === gpu.id),
            input,
          );
        },
      },
      GpuAvailability: {
        gpuType: async ({ gpuTypeId }: { gpuTypeId: string }, _args: unknown, context: RequestContext) => {
          const offer = (await offersFor({}, context)).find(({ type }) => type.id === gpuTypeId);
          return offer === undefined ? null : serializeGpuType(offer);
        },
      },
    },
  };
}

/** Disks, speeds and memory are accepted and ignored: Berth does not distinguish machines by them. */
function lowestPriceFilter({
  dataCenterId,
  countryCode,
  compliance,
  globalNetwork,
  ...stock
}: LowestPriceInput): GpuFilter {
  return {
    ...gpuStockFilter(stock),
    within: {
      ...(dataCenterId !== undefined && { ids: [dataCenterId] }),
      ...(countryCode !== undefined && { countryCodes: [countryCode.toUpperCase()] }),
      ...(compliance !== undefined && { compliance }),
      ...(globalNetwork === true && { globalNetwork }),
    },
  };
}

export function serializeGpuType({ type, prices, maxCount, virtual, dataCenters }: GpuOffer) {
  return {
    id: type.id,
    displayName: type.name,
    manufacturer: type.manufacturer,
    memoryInGb: type.memoryInGb,
    cudaCores: null,
    secureCloud: maxCount > 0,
    communityCloud: false,
    securePrice: prices.secure,
    communityPrice: prices.community,
    secureSpotPrice: prices.spot,
    communitySpotPrice: prices.spot,
    clusterPrice: prices.secure,
    oneWeekPrice: null,
    oneMonthPrice: null,
    threeMonthPrice: null,
    sixMonthPrice: null,
    maxGpuCount: maxCount,
    maxGpuCountCommunityCloud: 0,
    maxGpuCountSecureCloud: maxCount,
    minPodGpuCount: 1,
    nodeGroupGpuSizes: [],
    throughput: null,
    virtual,
    /** Where it is; not a field of its own. */
    dataCenterIds: dataCenters.map(({ id }) => id),
  };
}

function serializeLowestPrice(
  gpu: GpuTypeObject,
  offer: GpuOffer | undefined,
  { secureCloud, countryCode, gpuCount = 1 }: LowestPriceInput,
) {
  const inStock = offer !== undefined && offer.availability !== 'NONE';
  return {
    gpuName: gpu.displayName,
    gpuTypeId: gpu.id,
    minimumBidPrice: inStock ? offer.prices.spot : null,
    uninterruptablePrice: inStock
      ? secureCloud === false
        ? offer.prices.community
        : offer.prices.secure
      : null,
    minMemory: inStock ? MEMORY_PER_GPU_GB * gpuCount : null,
    minVcpu: inStock ? VCPU_PER_GPU * gpuCount : null,
    stockStatus: stockStatus(offer?.availability ?? 'NONE'),
    rentalPercentage:
      offer === undefined || offer.total === 0 ? null : ((offer.total - offer.free) / offer.total) * 100,
    rentedCount: offer === undefined ? 0 : offer.total - offer.free,
    totalCount: offer?.total ?? 0,
    countryCode: inStock ? (countryCode?.toUpperCase() ?? null) : null,
    compliance: [],
    maxUnreservedGpuCount: offer?.maxFree ?? 0,
    availableGpuCounts: Array.from({ length: offer?.maxFree ?? 0 }, (_, index) => index + 1),
    gpuTypeCudaVersions: (offer?.cudaVersions ?? []).map(({ version, availability }) => ({
      cudaVersion: version,
      availability: availability === 'NONE' ? 'UNAVAILABLE' : 'AVAILABLE',
    })),
  };
}
