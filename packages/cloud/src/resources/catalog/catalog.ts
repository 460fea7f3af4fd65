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
import { type Capacity, NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

export interface CatalogDeps {
  dataCenters: readonly DataCenterDefinition[];
  /** By the name that a data center's definition gives. */
  engines: ReadonlyMap<string, Engine>;
  prices: PriceSettings;
}

/** Stock of GPUs, wherever or in some data centers. */
export interface GpuFilter extends GpuRequest {
  within?: DataCenterFilter;
}

/** Stock of CPU machines, wherever or in some data centers. */
export interface CpuFilter extends CpuRequest {
  within?: DataCenterFilter;
}

interface ConnectedDataCenter {
  dataCenter: DataCenterDefinition;
  engine: Engine;
}

/** What can be rented here, where, and for how much: asked of the engines each time, so that it is never a promise without a machine. */
export class Catalog {
  #sites: readonly ConnectedDataCenter[];
  readonly #prices: PriceSettings;

  constructor({ dataCenters, engines, prices }: CatalogDeps) {
    this.#sites = dataCenters.map((dataCenter) => ({ dataCenter, engine: engineOf(dataCenter, engines) }));
    this.#prices = prices;
  }

  /** One more, which was not there at the start. */
  addDataCenter(dataCenter: DataCenterDefinition, engine: Engine): void {
    this.#sites = [...this.#sites, { dataCenter, engine }];
  }

  /** Every known type and every connected one. With country codes, only types that have machines in those countries. */
  async gpus(filter: GpuFilter = {}): Promise<GpuOffer[]> {
    const places = await this.#places();
    const countryCodes = filter.within?.countryCodes ?? [];
    const types =
      countryCodes.length === 0
        ? listedGpuTypes(places)
        : connectedGpuTypes(filterDataCenters(places, { countryCodes }));
    return types.map((type) => this.#gpuOffer(type, places, filter));
  }

  async gpu(id: string, filter: GpuFilter = {}): Promise<GpuOffer> {
    const places = await this.#places();
    const type = findGpuType(id) ?? connectedGpuTypes(places).find((connected) => connected.id === id);
    if (type === undefined) throw notFound('GPU type', id);
    return this.#gpuOffer(type, places, filter);
  }

  async cpus(filter: CpuFilter = {}): Promise<CpuOffer[]> {
    const places = filterDataCenters(await this.#places(), filter.within ?? {});
    return CPU_FLAVORS.map((flavor) => cpuOffer(flavor, places, filter, cpuPrices(this.#prices, flavor.id)));
  }

  async cpu(id: string, filter: CpuFilter = {}): Promise<CpuOffer> {
    const flavor = findCpuFlavor(id);
    if (flavor === undefined) throw notFound('CPU type', id);
    const places = filterDataCenters(await this.#places(), filter.within ?? {});
    return cpuOffer(flavor, places, filter, cpuPrices(this.#prices, id));
  }

  dataCenters(filter: DataCenterFilter = {}): DataCenterDefinition[] {
    return this.#sites
      .map((site) => site.dataCenter)
      .filter((dataCenter) => matchesDataCenter(dataCenter, filter));
  }

  dataCenter(id: string): DataCenterDefinition {
    return this.#site(id).dataCenter;
  }

  /** The GPU types that a data center has, also those of which all are taken. */
  async gpusIn(dataCenterId: string, request: GpuRequest = {}): Promise<NamedAvailability[]> {
    const place = await readCapacity(this.#site(dataCenterId));
    return connectedGpuTypes([place]).map(({ id, name }) => ({
      id,
      name,
      availability: availabilityLevel(gpuRequestsThatFit(usableGpus(place, id, request), request)),
    }));
  }

  /** The CPU flavours that a data center has room for. */
  async cpusIn(dataCenterId: string, request: CpuRequest = {}): Promise<NamedAvailability[]> {
    const place = await readCapacity(this.#site(dataCenterId));
    return CPU_FLAVORS.map((flavor) => ({ flavor, fitting: cpuRequestsThatFit(flavor, place, request) }))
      .filter(({ fitting }) => fitting > 0)
      .map(({ flavor: { id, name }, fitting }) => ({ id, name, availability: availabilityLevel(fitting) }));
  }

  /** What the machines of a data center are, and have free now; undefined where it is gone. */
  async capacity(dataCenterId: string): Promise<Capacity | undefined> {
    const site = this.#sites.find(({ dataCenter }) => dataCenter.id === dataCenterId);
    return site === undefined ? undefined : (await readCapacity(site)).capacity;
  }

  pools(): readonly GpuPool[] {
    return GPU_POOLS;
  }

  countryCodes(): string[] {
    const codes = this.#sites.map((site) => site.dataCenter.countryCode).filter((code) => code !== null);
    return [...new Set(codes)].sort();
  }

  async hostCpus(): Promise<HostCpu[]> {
    const places = await this.#places();
    return hostCpusOf(places.map(({ capacity }) => capacity).filter((capacity) => capacity !== NO_CAPACITY));
  }

  #gpuOffer(type: GpuType, places: readonly DataCenterCapacity[], filter: GpuFilter): GpuOffer {
    return gpuOffer(
      type,
      places,
      filterDataCenters(places, filter.within ?? {}),
      filter,
      gpuPrices(this.#prices, type.id),
    );
  }

  #places(): Promise<DataCenterCapacity[]> {
    return Promise.all(this.#sites.map(readCapacity));
  }

  #site(dataCenterId: string): ConnectedDataCenter {
    const site = this.#sites.find(({ dataCenter }) => dataCenter.id === dataCenterId);
    if (site === undefined) throw notFound('data center', dataCenterId);
    return site;
  }
}

function engineOf({ id, engine }: DataCenterDefinition, engines: ReadonlyMap<string, Engine>): Engine {
  const found = engines.get(engine);
  if (found === undefined)
    throw ruleError(`data center ${id} names the engine ${JSON.stringify(engine)}, which is not connected`);
  return found;
}

/** An engine that does not answer now has nothing to offer now; the rest of the catalog still stands. */
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
  places: readonly DataCenterCapacity[],
  filter: DataCenterFilter,
): DataCenterCapacity[] {
  return places.filter(({ dataCenter }) => matchesDataCenter(dataCenter, filter));
}
