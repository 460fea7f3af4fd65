import type { Engine } from '../../engines/engine.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import { availabilityLevel } from '../../domain/catalog/availability.ts';
import { CPU_FLAVORS, findCpuFlavor } from '../../domain/catalog/cpu-flavors.ts';
import { type CpuOffer, cpuOffer, type CpuRequest, cpuRequestsThatFit } from './cpu-offer.ts';
import {
  type DataCenterDefinition,
  type DataCenterFilter,
  matchesDataCenter,
} from '../../domain/catalog/data-centers.ts';
import { type GpuOffer, gpuOffer, type GpuRequest, gpuRequestsThatFit, usableGpus } from './gpu-offer.ts';
import { GPU_POOLS, type GpuPool } from '../../domain/catalog/gpu-pools.ts';
import { findGpuType, type GpuType } from '../../domain/catalog/gpu-types.ts';
import { type HostCpu, hostCpusOf } from './host-cpus.ts';
import {
  type NamedAvailability,
  connectedGpuTypes,
  type DataCenterCapacity,
  listedGpuTypes,
} from './data-center-capacity.ts';
import { cpuPrices, gpuPrices, type PriceSettings } from '../../domain/catalog/prices.ts';
import {
  type AccountIsolation,
  type Capacity,
  type GpuCapacity,
  NO_CAPACITY,
} from '../../domain/placement/engine-capacity.ts';

export interface CatalogDeps {
  dataCenters: readonly DataCenterDefinition[];
  /** By the engine name in the data center's definition. */
  engines: ReadonlyMap<string, Engine>;
  prices: PriceSettings;
}

/** A query for GPUs, optionally limited to some data centers. */
export interface GpuFilter extends GpuRequest {
  within?: DataCenterFilter;
}

/** A query for CPU machines, optionally limited to some data centers. */
export interface CpuFilter extends CpuRequest {
  within?: DataCenterFilter;
}

/** How long the GPUs of a data center are remembered for what they are; that changes with hardware only. */
const GPU_CACHE_MS = 10_000;

interface ConnectedDataCenter {
  dataCenter: DataCenterDefinition;
  engine: Engine;
}

/**
 * GPU and CPU types with prices and availability per data center. Capacity is read from the engines each
 * time, so nothing is offered that no machine can provide.
 */
export class Catalog {
  #connected: readonly ConnectedDataCenter[];
  readonly #prices: PriceSettings;
  readonly #gpus = new Map<string, { at: number; gpus: Promise<readonly GpuCapacity[]> }>();

  constructor({ dataCenters, engines, prices }: CatalogDeps) {
    this.#connected = dataCenters.map((dataCenter) => ({
      dataCenter,
      engine: engineOf(dataCenter, engines),
    }));
    this.#prices = prices;
  }

  /** Adds a data center while the server runs. */
  addDataCenter(dataCenter: DataCenterDefinition, engine: Engine): void {
    this.#connected = [...this.#connected, { dataCenter, engine }];
  }

  /**
   * All known and all connected GPU types. With country codes, only types that have machines in those
   * countries.
   */
  async gpus(filter: GpuFilter = {}): Promise<GpuOffer[]> {
    const sites = await this.#readCapacities();
    const countryCodes = filter.within?.countryCodes ?? [];
    const types =
      countryCodes.length === 0
        ? listedGpuTypes(sites)
        : connectedGpuTypes(filterDataCenters(sites, { countryCodes }));
    return types.map((type) => this.#gpuOffer(type, sites, filter));
  }

  async gpu(id: string, filter: GpuFilter = {}): Promise<GpuOffer> {
    const sites = await this.#readCapacities();
    const type = findGpuType(id) ?? connectedGpuTypes(sites).find((connected) => connected.id === id);
    if (type === undefined) throw notFound('GPU type', id);
    return this.#gpuOffer(type, sites, filter);
  }

  async cpus(filter: CpuFilter = {}): Promise<CpuOffer[]> {
    const sites = filterDataCenters(await this.#readCapacities(), filter.within ?? {});
    return CPU_FLAVORS.map((flavor) => cpuOffer(flavor, sites, filter, cpuPrices(this.#prices, flavor.id)));
  }

  async cpu(id: string, filter: CpuFilter = {}): Promise<CpuOffer> {
    const flavor = findCpuFlavor(id);
    if (flavor === undefined) throw notFound('CPU type', id);
    const sites = filterDataCenters(await this.#readCapacities(), filter.within ?? {});
    return cpuOffer(flavor, sites, filter, cpuPrices(this.#prices, id));
  }

  dataCenters(filter: DataCenterFilter = {}): DataCenterDefinition[] {
    return this.#connected
      .map((connected) => connected.dataCenter)
      .filter((dataCenter) => matchesDataCenter(dataCenter, filter));
  }

  dataCenter(id: string): DataCenterDefinition {
    return this.#connectedDataCenter(id).dataCenter;
  }

  /** The GPU types of a data center, including those with none free. */
  async gpusIn(dataCenterId: string, request: GpuRequest = {}): Promise<NamedAvailability[]> {
    const site = await readCapacity(this.#connectedDataCenter(dataCenterId));
    return connectedGpuTypes([site]).map(({ id, name }) => ({
      id,
      name,
      availability: availabilityLevel(gpuRequestsThatFit(usableGpus(site, id, request), request)),
    }));
  }

  /** The CPU flavors that a data center has capacity for. */
  async cpusIn(dataCenterId: string, request: CpuRequest = {}): Promise<NamedAvailability[]> {
    const site = await readCapacity(this.#connectedDataCenter(dataCenterId));
    return CPU_FLAVORS.map((flavor) => ({ flavor, fitting: cpuRequestsThatFit(flavor, site, request) }))
      .filter(({ fitting }) => fitting > 0)
      .map(({ flavor: { id, name }, fitting }) => ({ id, name, availability: availabilityLevel(fitting) }));
  }

  /** Total and free capacity of a data center; undefined if it is not connected. */
  async capacity(dataCenterId: string): Promise<Capacity | undefined> {
    const connected = this.#connected.find(({ dataCenter }) => dataCenter.id === dataCenterId);
    return connected === undefined ? undefined : (await readCapacity(connected)).capacity;
  }

  /** Whether the GPUs of a type in a data center are only names, without hardware behind them. */
  async isVirtualGpu(dataCenterId: string, gpuTypeId: string): Promise<boolean> {
    const same = (await this.#recentGpus(dataCenterId)).filter((gpu) => gpu.gpuTypeId === gpuTypeId);
    return same.length > 0 && same.every(({ virtual }) => virtual);
  }

  /** The GPU types of which this installation has no hardware, but virtual ones. */
  async virtualGpuTypes(): Promise<string[]> {
    const sites = await Promise.all(this.#connected.map(({ dataCenter }) => this.#recentGpus(dataCenter.id)));
    const real = new Set<string>();
    const found = new Set<string>();
    for (const { gpuTypeId, virtual } of sites.flat()) (virtual ? found : real).add(gpuTypeId);
    return [...found].filter((id) => !real.has(id));
  }

  /** How a data center keeps accounts apart; undefined if its engine does not say. */
  async isolation(dataCenterId: string): Promise<AccountIsolation | undefined> {
    return this.#connectedDataCenter(dataCenterId).engine.isolation?.();
  }

  pools(): readonly GpuPool[] {
    return GPU_POOLS;
  }

  countryCodes(): string[] {
    const codes = this.#connected
      .map((connected) => connected.dataCenter.countryCode)
      .filter((code) => code !== null);
    return [...new Set(codes)].sort();
  }

  async hostCpus(): Promise<HostCpu[]> {
    const sites = await this.#readCapacities();
    return hostCpusOf(sites.map(({ capacity }) => capacity).filter((capacity) => capacity !== NO_CAPACITY));
  }

  #gpuOffer(type: GpuType, sites: readonly DataCenterCapacity[], filter: GpuFilter): GpuOffer {
    return gpuOffer(
      type,
      sites,
      filterDataCenters(sites, filter.within ?? {}),
      filter,
      gpuPrices(this.#prices, type.id),
    );
  }

  /** A list of pods asks for each of them, so the engine is not asked each time. */
  #recentGpus(dataCenterId: string): Promise<readonly GpuCapacity[]> {
    const now = performance.now();
    const known = this.#gpus.get(dataCenterId);
    if (known !== undefined && now - known.at < GPU_CACHE_MS) return known.gpus;
    const gpus = this.capacity(dataCenterId).then((capacity) => capacity?.gpus ?? []);
    this.#gpus.set(dataCenterId, { at: now, gpus });
    gpus.catch(() => this.#gpus.delete(dataCenterId));
    return gpus;
  }

  #readCapacities(): Promise<DataCenterCapacity[]> {
    return Promise.all(this.#connected.map(readCapacity));
  }

  #connectedDataCenter(dataCenterId: string): ConnectedDataCenter {
    const connected = this.#connected.find(({ dataCenter }) => dataCenter.id === dataCenterId);
    if (connected === undefined) throw notFound('data center', dataCenterId);
    return connected;
  }
}

function engineOf({ id, engine }: DataCenterDefinition, engines: ReadonlyMap<string, Engine>): Engine {
  const found = engines.get(engine);
  if (found === undefined)
    throw ruleError(`data center ${id} uses the engine ${JSON.stringify(engine)}, which is not connected`);
  return found;
}

/** An engine that does not answer counts as having no capacity; the rest of the catalog stays available. */
async function readCapacity({ dataCenter, engine }: ConnectedDataCenter): Promise<DataCenterCapacity> {
  try {
    return { dataCenter, capacity: await engine.capacity() };
  } catch (error) {
    if (error instanceof BerthError && error.code === 'unavailable')
      return { dataCenter, capacity: NO_CAPACITY };
    throw error;
  }
}

function filterDataCenters(
  sites: readonly DataCenterCapacity[],
  filter: DataCenterFilter,
): DataCenterCapacity[] {
  return sites.filter(({ dataCenter }) => matchesDataCenter(dataCenter, filter));
}
