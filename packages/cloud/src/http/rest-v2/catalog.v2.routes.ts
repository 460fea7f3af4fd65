import type { CpuOffer } from '../../resources/catalog/cpu-offer.ts';
import {
  type DataCenterDefinition,
  REGIONS,
  COMPLIANCE_STANDARDS,
} from '../../domain/catalog/data-centers.ts';
import { ACCOUNT_ISOLATION } from '../../domain/placement/engine-capacity.ts';
import type { GpuOffer } from '../../resources/catalog/gpu-offer.ts';
import type { Catalog, CpuFilter, GpuFilter } from '../../resources/catalog/catalog.ts';
import { officialTemplates } from '../../resources/templates/official-templates.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { ruleError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import {
  boolean,
  commaList,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId } from './common.v2.schema.ts';
import { pagination } from './pagination.v2.ts';
import { serializeTemplate, template } from './templates.v2.routes.ts';
import {
  MAX_CATALOG_TEMPLATES,
  CATALOG_GPU_COUNT,
  CATALOG_VCPU_COUNT,
  CUDA_VERSION_PATTERN,
} from '../../domain/limits.ts';
import { VOLUME_TYPES } from '../../domain/records.ts';
import { CLOUD_TYPES } from '../../domain/pods/pod-record.ts';

const availability = stringEnum(['NONE', 'LOW', 'MEDIUM', 'HIGH'], {
  description: 'How many such requests fit on what is connected now',
});
const stock = list(object({ id: text(), name: text(), availability }));
const include = commaList(stringEnum(['AVAILABILITY']), {
  description: 'Also the current stock; only with `product`',
});

const gpuType = named(
  'GpuType',
  object(
    {
      id: text({ description: 'Use it to create a pod' }),
      name: text(),
      pool: nullable(text({ description: 'Use it to create an endpoint' })),
      manufacturer: stringEnum(['NVIDIA', 'AMD', 'UNKNOWN']),
      memory: integer({ description: 'VRAM in GB' }),
      secure: boolean(),
      community: boolean(),
      price: object(
        { secure: number(), community: number(), serverless: number() },
        {},
        { description: 'USD for one GPU and hour' },
      ),
      maxCount: object(
        { secure: integer(), community: integer() },
        {},
        { description: 'The most that one pod can have' },
      ),
      virtual: boolean({
        description: 'No such GPU is connected: it is virtual, to try definitions',
      }),
    },
    {
      availability,
      dataCenters: stock,
      cudaVersions: list(object({ version: text(), available: boolean() })),
    },
  ),
);

const cpuType = named(
  'CpuType',
  object(
    {
      id: text(),
      name: text(),
      group: text(),
      vcpu: object({ min: integer(), max: integer() }),
      ramGbPerVcpu: number(),
      price: object(
        { securePerVcpu: number(), serverlessPerVcpu: number() },
        {},
        { description: 'USD for one vCPU and hour' },
      ),
    },
    { availability, dataCenters: stock },
  ),
);

const volumeType = stringEnum(VOLUME_TYPES);
const dataCenter = named(
  'DataCenter',
  object(
    {
      id: text(),
      name: text(),
      region: stringEnum(REGIONS),
      globalNetwork: boolean(),
      networkVolumeTypes: list(volumeType),
      compliance: list(stringEnum(COMPLIANCE_STANDARDS)),
    },
    {
      isolation: stringEnum(ACCOUNT_ISOLATION, {
        description:
          'How accounts are kept apart here. containers: in containers. namespaces: each as a user of ' +
          'its own, in namespaces. users: each as a user of its own. refused: only the root account ' +
          'can run anything. none: not at all',
      }),
      gpuAvailability: stock,
      cpuAvailability: stock,
    },
    { description: 'A named place to run things' },
  ),
);

const cudaVersion = text({ pattern: CUDA_VERSION_PATTERN });
const gpuQuery = object(
  {},
  {
    include,
    product: commaList(stringEnum(['POD', 'CLUSTER', 'SERVERLESS']), {
      description: 'What the stock is for',
    }),
    count: integer({ ...CATALOG_GPU_COUNT, description: 'GPUs of each pod or worker' }),
    cloud: stringEnum(CLOUD_TYPES),
    countryCodes: commaList(text({ pattern: '^[A-Za-z]{2}$' })),
    cudaVersions: commaList(cudaVersion, { description: 'Any of these' }),
    minCudaVersion: text({ pattern: '^\\d+(\\.\\d+)?$', description: 'This or newer' }),
  },
);
const cpuQuery = object(
  {},
  {
    include,
    product: commaList(stringEnum(['POD', 'SERVERLESS'])),
    vcpuCount: integer({ ...CATALOG_VCPU_COUNT }),
  },
);
const includeStock = commaList(stringEnum(['GPU_AVAILABILITY', 'CPU_AVAILABILITY']), {
  description: 'Also stock, as it is now',
});

export function catalogOperations({ catalog, templates }: ResourceServices): Operation[] {
  const tag = 'Catalog';
  return [
    operation({
      id: 'listGpus',
      method: 'GET',
      path: '/catalog/gpus',
      tag,
      summary: 'List GPU types',
      access: 'read',
      query: gpuQuery,
      status: 200,
      response: named('GpuTypeList', object({ gpus: list(gpuType) })),
      errorStatuses: [400, 422],
      handle: async ({ query }) => ({
        gpus: (await catalog.gpus(gpuFilter(query))).map((offer) =>
          serializeGpuType(offer, wantsStock(query)),
        ),
      }),
    }),
    operation({
      id: 'getGpu',
      method: 'GET',
      path: '/catalog/gpus/{id}',
      tag,
      summary: 'Get a GPU type',
      access: 'read',
      params: byId,
      query: gpuQuery,
      status: 200,
      response: gpuType,
      errorStatuses: [400, 404, 422],
      handle: async ({ params, query }) =>
        serializeGpuType(await catalog.gpu(params.id, gpuFilter(query)), wantsStock(query)),
    }),
    operation({
      id: 'listCpus',
      method: 'GET',
      path: '/catalog/cpus',
      tag,
      summary: 'List CPU flavours',
      access: 'read',
      query: cpuQuery,
      status: 200,
      response: named('CpuTypeList', object({ cpus: list(cpuType) })),
      errorStatuses: [400, 422],
      handle: async ({ query }) => ({
        cpus: (await catalog.cpus(cpuFilter(query))).map((offer) =>
          serializeCpuType(offer, wantsStock(query)),
        ),
      }),
    }),
    operation({
      id: 'getCpu',
      method: 'GET',
      path: '/catalog/cpus/{id}',
      tag,
      summary: 'Get a CPU flavour',
      access: 'read',
      params: byId,
      query: cpuQuery,
      status: 200,
      response: cpuType,
      errorStatuses: [400, 404, 422],
      handle: async ({ params, query }) =>
        serializeCpuType(await catalog.cpu(params.id, cpuFilter(query)), wantsStock(query)),
    }),
    operation({
      id: 'listDataCenters',
      method: 'GET',
      path: '/catalog/datacenters',
      tag,
      summary: 'List data centers',
      access: 'read',
      query: object(
        {},
        {
          include: includeStock,
          regions: commaList(stringEnum(REGIONS), { description: 'In one of these' }),
          networkVolumeTypes: commaList(volumeType, { description: 'With all of these' }),
          compliance: commaList(stringEnum(COMPLIANCE_STANDARDS), { description: 'With all of these' }),
          globalNetwork: boolean(),
        },
      ),
      status: 200,
      response: named('DataCenterList', object({ dataCenters: list(dataCenter) })),
      errorStatuses: [422],
      handle: async ({ query: { include: wanted, ...filter } }) => ({
        dataCenters: await Promise.all(
          catalog.dataCenters(filter).map((found) => serializeDataCenter(catalog, found, wanted)),
        ),
      }),
    }),
    operation({
      id: 'getDataCenter',
      method: 'GET',
      path: '/catalog/datacenters/{id}',
      tag,
      summary: 'Get a data center',
      access: 'read',
      params: byId,
      query: object({}, { include: includeStock }),
      status: 200,
      response: dataCenter,
      errorStatuses: [404, 422],
      handle: ({ params, query }) =>
        serializeDataCenter(catalog, catalog.dataCenter(params.id), query.include),
    }),
    operation({
      id: 'listCatalogTemplates',
      method: 'GET',
      path: '/catalog/templates',
      tag,
      summary: 'List public templates',
      access: 'read',
      query: object(
        {},
        {
          source: stringEnum(['official', 'verified', 'community'], {
            default: 'official',
            description:
              'Those that come with Berth, those that the operator vouches for, or those that accounts made public',
          }),
        },
      ),
      status: 200,
      response: named('CatalogTemplateList', object({ templates: list(template), pagination })),
      errorStatuses: [422],
      handle: async ({ query: { source = 'official' } }) => {
        const found =
          source === 'official'
            ? officialTemplates
            : source === 'community'
              ? await templates.listPublic(MAX_CATALOG_TEMPLATES)
              : [];
        return {
          templates: found.slice(0, MAX_CATALOG_TEMPLATES).map(serializeTemplate),
          pagination: { nextCursor: null, hasNextPage: false },
        };
      },
    }),
  ];
}

function wantsStock(query: { include?: string[] }): boolean {
  return query.include?.includes('AVAILABILITY') ?? false;
}

/**
 * A client that asks for stock without a product means pods. A product or a filter without asking for stock
 * is a mistake.
 */
function checkStockQuery(query: { include?: string[] } & Record<string, unknown>): void {
  if (wantsStock(query)) return;
  const { include: _, ...filters } = query;
  const stray = Object.keys(filters).filter((key) => filters[key] !== undefined);
  if (stray.length > 0) throw ruleError(`${stray.join(', ')} goes only with include=AVAILABILITY`);
}

function gpuFilter(query: Static<typeof gpuQuery>): GpuFilter {
  checkStockQuery(query);
  const { product, count, countryCodes, cudaVersions, minCudaVersion } = query;
  if (cudaVersions !== undefined && cudaVersions.length > 0 && minCudaVersion !== undefined)
    throw ruleError('cudaVersions and minCudaVersion exclude each other; send one of them');
  const floor =
    minCudaVersion === undefined || minCudaVersion.includes('.') ? minCudaVersion : `${minCudaVersion}.0`;
  return {
    products: product ?? ['POD'],
    ...(count !== undefined && { count }),
    cuda: {
      ...(cudaVersions !== undefined && { allowed: cudaVersions }),
      ...(floor !== undefined && { minimum: floor }),
    },
    ...(countryCodes !== undefined && {
      within: { countryCodes: countryCodes.map((code) => code.toUpperCase()) },
    }),
  };
}

function cpuFilter(query: Static<typeof cpuQuery>): CpuFilter {
  checkStockQuery(query);
  const { product, vcpuCount } = query;
  return { products: product ?? ['POD'], ...(vcpuCount !== undefined && { vcpuCount }) };
}

function serializeGpuType(offer: GpuOffer, withStock: boolean): Static<typeof gpuType> {
  const { type, prices, maxCount, virtual } = offer;
  return {
    id: type.id,
    name: type.name,
    pool: type.pool,
    manufacturer: type.manufacturer,
    memory: type.memoryInGb,
    secure: maxCount > 0,
    community: false,
    price: { secure: prices.secure, community: prices.community, serverless: prices.serverless },
    maxCount: { secure: maxCount, community: 0 },
    virtual,
    ...(withStock && {
      availability: offer.availability,
      dataCenters: offer.dataCenters,
      cudaVersions: offer.cudaVersions.map(({ version, availability: level }) => ({
        version,
        available: level !== 'NONE',
      })),
    }),
  };
}

function serializeCpuType(
  { flavor, prices, availability: level, dataCenters }: CpuOffer,
  withStock: boolean,
): Static<typeof cpuType> {
  return {
    id: flavor.id,
    name: flavor.name,
    group: flavor.group,
    vcpu: { min: flavor.minVcpu, max: flavor.maxVcpu },
    ramGbPerVcpu: flavor.ramGbPerVcpu,
    price: { securePerVcpu: prices.secure, serverlessPerVcpu: prices.serverless },
    ...(withStock && { availability: level, dataCenters }),
  };
}

async function serializeDataCenter(
  catalog: Catalog,
  found: DataCenterDefinition,
  wanted: string[] = [],
): Promise<Static<typeof dataCenter>> {
  const gpus = wanted.includes('GPU_AVAILABILITY') ? await catalog.gpusIn(found.id) : [];
  const cpus = wanted.includes('CPU_AVAILABILITY') ? await catalog.cpusIn(found.id) : [];
  const isolation = await catalog.isolation(found.id);
  return {
    id: found.id,
    name: found.name,
    region: found.region,
    globalNetwork: found.globalNetwork,
    networkVolumeTypes: [...found.networkVolumeTypes],
    compliance: [...found.compliance] as Static<typeof dataCenter>['compliance'],
    ...(isolation !== undefined && { isolation }),
    ...(gpus.length > 0 && { gpuAvailability: gpus }),
    ...(cpus.length > 0 && { cpuAvailability: cpus }),
  };
}
