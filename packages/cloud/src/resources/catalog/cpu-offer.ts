import {
  type AvailabilityLevel,
  availabilityLevel,
  requestsThatFit,
} from '../../domain/catalog/availability.ts';
import type { CpuFlavor } from '../../domain/catalog/cpu-flavors.ts';
import {
  type NamedAvailability,
  dataCenterAvailability,
  type DataCenterCapacity,
  sum,
} from './data-center-capacity.ts';
import type { CpuPrices } from '../../domain/catalog/prices.ts';
import type { CpuProduct } from '../../domain/catalog/products.ts';

/** A request for CPU machines. With several products, one of them must be supported. */
export interface CpuRequest {
  /** Default: the smallest size of the flavor. */
  vcpuCount?: number;
  products?: readonly CpuProduct[];
}

/** A CPU flavor with its prices and availability. */
export interface CpuOffer {
  flavor: CpuFlavor;
  prices: CpuPrices;
  availability: AvailabilityLevel;
  /** The data centers that have capacity for the request. */
  dataCenters: NamedAvailability[];
}

export function cpuOffer(
  flavor: CpuFlavor,
  sites: readonly DataCenterCapacity[],
  request: CpuRequest,
  prices: CpuPrices,
): CpuOffer {
  const stock = sites.map((site) => ({ site, fitting: cpuRequestsThatFit(flavor, site, request) }));
  return {
    flavor,
    prices,
    availability: availabilityLevel(sum(stock.map(({ fitting }) => fitting))),
    dataCenters: stock
      .filter(({ fitting }) => fitting > 0)
      .map(({ site, fitting }) => dataCenterAvailability(site, fitting)),
  };
}

/** Instances share the cores of a machine, so only memory limits how many fit. */
export function cpuRequestsThatFit(flavor: CpuFlavor, site: DataCenterCapacity, request: CpuRequest): number {
  const vcpuCount = request.vcpuCount ?? flavor.minVcpu;
  if (vcpuCount < flavor.minVcpu || vcpuCount > flavor.maxVcpu) return 0;
  if (request.products?.length && !request.products.some((product) => flavor.products.includes(product)))
    return 0;
  return requestsThatFit([site.capacity.memoryInGb], vcpuCount * flavor.ramGbPerVcpu);
}
