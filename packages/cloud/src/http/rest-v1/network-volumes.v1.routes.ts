import type { Caller } from '../../domain/caller.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, list, named, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { MAX_NAME_LENGTH, V1_VOLUME_SIZE_GB } from '../../domain/limits.ts';

const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' });
const size = integer({ ...V1_VOLUME_SIZE_GB, description: 'Size in GB' });
const byVolumeId = object({ networkVolumeId: text({ minLength: 1 }) });

/** Exactly these four: a strict client refuses a fifth. */
export const networkVolume = named(
  'NetworkVolume',
  object({ id: text(), name: text(), size: integer(), dataCenterId: text() }),
);
const updateInput = named('NetworkVolumeUpdateInput', object({}, { name, size }));

export function networkVolumeOperations({ volumes }: ResourceServices): Operation[] {
  const tag = 'Network volumes';
  const update = {
    tag,
    access: 'write' as const,
    params: byVolumeId,
    body: updateInput,
    status: 200 as const,
    response: networkVolume,
    errorStatuses: [400, 404],
    handle: async ({
      caller,
      params,
      body,
    }: {
      caller: Caller;
      params: { networkVolumeId: string };
      body: Static<typeof updateInput>;
    }) => serializeNetworkVolume(await volumes.update(caller, params.networkVolumeId, body, 'larger')),
  };
  return [
    operation({
      id: 'createNetworkVolume',
      method: 'POST',
      path: '/networkvolumes',
      tag,
      summary: 'Create a network volume',
      access: 'write',
      body: named('NetworkVolumeCreateInput', object({ name, size, dataCenterId: text({ minLength: 1 }) })),
      status: 200,
      response: networkVolume,
      errorStatuses: [400, 507],
      handle: async ({ caller, body }) => serializeNetworkVolume(await volumes.create(caller, body)),
    }),
    operation({
      id: 'listNetworkVolumes',
      method: 'GET',
      path: '/networkvolumes',
      tag,
      summary: 'List network volumes',
      access: 'read',
      status: 200,
      response: list(networkVolume),
      handle: async ({ caller }) => (await volumes.list(caller)).map(serializeNetworkVolume),
    }),
    operation({
      id: 'getNetworkVolume',
      method: 'GET',
      path: '/networkvolumes/{networkVolumeId}',
      tag,
      summary: 'Get a network volume',
      access: 'read',
      params: byVolumeId,
      status: 200,
      response: networkVolume,
      errorStatuses: [404],
      handle: async ({ caller, params }) =>
        serializeNetworkVolume(await volumes.get(caller, params.networkVolumeId)),
    }),
    operation({
      ...update,
      id: 'updateNetworkVolume',
      method: 'PATCH',
      path: '/networkvolumes/{networkVolumeId}',
      summary: 'Rename or grow a network volume',
    }),
    operation({
      ...update,
      id: 'updateNetworkVolumeByPost',
      method: 'POST',
      path: '/networkvolumes/{networkVolumeId}/update',
      summary: 'Rename or grow a network volume (the same as PATCH)',
    }),
    operation({
      id: 'deleteNetworkVolume',
      method: 'DELETE',
      path: '/networkvolumes/{networkVolumeId}',
      tag,
      summary: 'Delete a network volume and its data',
      access: 'write',
      params: byVolumeId,
      status: 204,
      errorStatuses: [400, 404, 507],
      handle: ({ caller, params }) => volumes.remove(caller, params.networkVolumeId),
    }),
  ];
}

function serializeNetworkVolume({
  id,
  name: shown,
  size: gigabytes,
  dataCenterId,
}: NetworkVolume): Static<typeof networkVolume> {
  return { id, name: shown, size: gigabytes, dataCenterId };
}
