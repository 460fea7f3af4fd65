import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Release } from './fleet.ts';
import type { Change, Endpoint } from './records.ts';

/** The words in which a release tells its changes, beside the endpoint's own. */
const SHOWN_AS: Partial<Record<keyof Endpoint, string>> = {
  image: 'template.imageName',
  args: 'template.dockerArgs',
  env: 'template.env',
  ports: 'template.ports',
  containerDisk: 'template.containerDiskInGb',
  registryId: 'template.containerRegistryAuthId',
  dataCenterIds: 'locations',
};
/** Values of the environment are nobody's business but the container's. */
const HIDDEN: readonly (keyof Endpoint)[] = ['env'];
const NOT_TOLD: readonly (keyof Endpoint)[] = ['id', 'accountId', 'createdAt', 'updatedAt', 'version'];

/** The release that leads from one version of an endpoint to the next; the first one changes nothing. */
export function releaseOf(before: Endpoint | undefined, after: Endpoint): Release {
  return {
    endpointId: after.id,
    version: after.version,
    id: randomUUID(),
    accountId: after.accountId,
    createdAt: after.updatedAt,
    changes: before === undefined ? [] : changesOf(before, after),
    endpoint: after,
  };
}

function changesOf(before: Endpoint, after: Endpoint): Change[] {
  const fields = (Object.keys(after) as (keyof Endpoint)[]).filter(
    (field) => !NOT_TOLD.includes(field) && !isDeepStrictEqual(before[field], after[field]),
  );
  return fields.map((field) => ({
    field: SHOWN_AS[field] ?? field,
    ...(!HIDDEN.includes(field) && { from: before[field], to: after[field] }),
  }));
}
