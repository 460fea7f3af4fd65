import type { Endpoint, NetworkVolume } from '../records.ts';
import type { DataCenterDefinition } from '../catalog/data-centers.ts';
import type { CatalogSnapshot } from '../catalog/catalog-snapshot.ts';
import { unknownValueMessage } from '../catalog/catalog-snapshot.ts';

/**
 * The data centers that a text such as `EU-RO-1,US` comes down to: each item is a data center
 * or a country. What is not here binds nothing, so that a definition made for places that this
 * installation does not have still runs; with none of them here, it runs anywhere.
 */
export function dataCentersInLocations(
  locations: string,
  dataCenters: readonly DataCenterDefinition[],
): string[] {
  const items = new Set(locations.split(',').map((item) => item.trim().toUpperCase()));
  return dataCenters
    .filter(
      ({ id, countryCode }) =>
        items.has(id.toUpperCase()) || (countryCode !== null && items.has(countryCode.toUpperCase())),
    )
    .map(({ id }) => id);
}

/** The place as GraphQL words it. */
export function locationsOf({
  locations,
  dataCenterIds,
}: Pick<Endpoint, 'locations' | 'dataCenterIds'>): string {
  return locations === '' ? dataCenterIds.join(',') : locations;
}

export function dataCenterFindings(
  dataCenterIds: readonly string[],
  { dataCenters }: CatalogSnapshot,
): string[] {
  const known = dataCenters.map(({ id }) => id);
  return dataCenterIds
    .filter((id) => !known.includes(id))
    .map((id) => unknownValueMessage('data center', id, known));
}

/**
 * `volumes` are those of the wanted ids that the account has; `rollBackTo` is the release that wants them,
 * where it is an earlier one.
 */
export function volumeFindings(
  { networkVolumeIds, dataCenterIds }: Pick<Endpoint, 'networkVolumeIds' | 'dataCenterIds'>,
  volumes: readonly NetworkVolume[],
  rollBackTo?: number,
): string[] {
  const missing = networkVolumeIds.filter((wanted) => !volumes.some(({ id }) => id === wanted));
  if (missing.length > 0)
    return missing.map((id) => missingVolume(JSON.stringify(id.slice(0, 64)), rollBackTo));
  return volumes.flatMap(({ id, dataCenterId }, index) => {
    const neighbour = volumes.slice(0, index).find((other) => other.dataCenterId === dataCenterId);
    if (neighbour !== undefined)
      return [
        `network volumes ${neighbour.id} and ${id} are both in ${dataCenterId}; an endpoint takes one ` +
          'in each data center',
      ];
    if (dataCenterIds.length > 0 && !dataCenterIds.includes(dataCenterId))
      return [
        `network volume ${id} is in ${dataCenterId}, which is not among the data centers ${dataCenterIds.join(', ')}`,
      ];
    return [];
  });
}

function missingVolume(volume: string, rollBackTo: number | undefined): string {
  if (rollBackTo === undefined)
    return `network volume ${volume} does not exist in this account; create it first or leave it out`;
  return (
    `release ${rollBackTo} used network volume ${volume}, which was deleted; change the endpoint ` +
    'itself to what you want of that release, with another volume or none'
  );
}
