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

/** What stock is asked for. Of several products the best placed one counts. */
export interface CpuRequest {
  /** The flavour's smallest if not said. */
  vcpuCount?: number;
  products?: readonly CpuProduct[];
}

/** A CPU flavour as it can be had. */
export interface CpuOffer {
  flavor: CpuFlavor;
  prices: CpuPrices;
  availability: AvailabilityLevel;
  /** The data centers that have machines for the request. */
  dataCenters: NamedAvailability[];
}

export function cpuOffer(
  flavor: CpuFlavor,
  places: readonly DataCenterCapacity[],
  request: CpuRequest,
  prices: CpuPrices,
): CpuOffer {
  const stock = places.map((place) => ({ place, fitting: cpuRequestsThatFit(flavor, place, request) }));
  return {
    flavor,
    prices,
    availability: availabilityLevel(sum(stock.map(({ fitting }) => fitting))),
    dataCenters: stock
      .filter(({ fitting }) => fitting > 0)
      .map(({ place, fitting }) => dataCenterAvailability(place, fitting)),
  };
}

/** Cores are shared by all that runs on a machine; memory is what runs out. */
export function cpuRequestsThatFit(
  flavor: CpuFlavor,
  place: DataCenterCapacity,
  request: CpuRequest,
): number {
  const vcpuCount = request.vcpuCount ?? flavor.minVcpu;
  if (vcpuCount < flavor.minVcpu || vcpuCount > flavor.maxVcpu) return 0;
  if (request.products?.length && !request.products.some((product) => flavor.products.includes(product)))
    return 0;
  return requestsThatFit([place.capacity.memoryInGb], vcpuCount * flavor.ramGbPerVcpu);
}
