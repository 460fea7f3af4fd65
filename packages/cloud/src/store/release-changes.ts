import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { FieldChange, Endpoint } from '../domain/records.ts';
import type { Release } from '../domain/endpoints/worker-record.ts';

/** The names under which a release lists its changes, beside the endpoint's own. */
const PUBLIC_FIELD_NAMES: Partial<Record<keyof Endpoint, string>> = {
  image: 'template.imageName',
  args: 'template.dockerArgs',
  env: 'template.env',
  ports: 'template.ports',
  containerDisk: 'template.containerDiskInGb',
  registryId: 'template.containerRegistryAuthId',
  dataCenterIds: 'locations',
};
/** Values of environment variables may be secret: only their names are listed. */
const FIELDS_WITHOUT_VALUES: readonly (keyof Endpoint)[] = ['env'];
const IGNORED_FIELDS: readonly (keyof Endpoint)[] = ['id', 'accountId', 'createdAt', 'updatedAt', 'version'];

/** The release that leads from one version of an endpoint to the next; the first one changes nothing. */
export function createRelease(before: Endpoint | undefined, after: Endpoint): Release {
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

function changesOf(before: Endpoint, after: Endpoint): FieldChange[] {
  const fields = (Object.keys(after) as (keyof Endpoint)[]).filter(
    (field) => !IGNORED_FIELDS.includes(field) && !isDeepStrictEqual(before[field], after[field]),
  );
  return fields.map((field) => ({
    field: PUBLIC_FIELD_NAMES[field] ?? field,
    ...(!FIELDS_WITHOUT_VALUES.includes(field) && { from: before[field], to: after[field] }),
  }));
}
