import type { ResourceServices } from '../../resources/resources.ts';
import { type NetworkVolume, VOLUME_TYPES } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId } from './common.v2.schema.ts';
import { MAX_NAME_LENGTH, V2_VOLUME_SIZE_GB } from '../../domain/limits.ts';

const type = stringEnum(VOLUME_TYPES, { description: 'The storage tier' });
const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' });
const size = integer({ ...V2_VOLUME_SIZE_GB, description: 'Size in GB' });

const networkVolume = named(
  'NetworkVolume',
  object(
    {
      id: text(),
      name: text(),
      size: integer({ description: 'Size in GB' }),
      dataCenter: text(),
      type,
      used: nullable(
        integer({
          description:
            'Bytes of all files in it, as last counted: a moment ago, or minutes where there is much ' +
            'to count. Null where it was not counted yet',
        }),
      ),
    },
    {},
    { description: 'A disk that outlives what mounts it, in one data center' },
  ),
);

export function networkVolumeOperations({ volumes }: ResourceServices): Operation[] {
  const tag = 'Network volumes';
  const showAll = async (found: NetworkVolume[]): Promise<NetworkVolumeResponse[]> => {
    const usages = await volumes.usages(found);
    return found.map((volume, index) => ({
      ...serializeDefinition(volume),
      used: usages[index]?.bytes ?? null,
    }));
  };
  const show = async (volume: NetworkVolume): Promise<NetworkVolumeResponse> => ({
    ...serializeDefinition(volume),
    used: (await volumes.usages([volume]))[0]?.bytes ?? null,
  });
  return [
    operation({
      id: 'listNetworkVolumes',
      method: 'GET',
      path: '/network-volumes',
      tag,
      summary: 'List your network volumes, newest first',
      access: 'read',
      status: 200,
      response: named('NetworkVolumeList', object({ networkVolumes: list(networkVolume) })),
      handle: async ({ caller }) => ({ networkVolumes: await showAll(await volumes.list(caller)) }),
    }),
    operation({
      id: 'createNetworkVolume',
      method: 'POST',
      path: '/network-volumes',
      tag,
      summary: 'Create a network volume',
      access: 'write',
      body: named(
        'CreateNetworkVolume',
        object(
          {
            name,
            size,
            dataCenter: text({ minLength: 1, description: 'Id of a data center, see the catalog' }),
          },
          { type },
        ),
      ),
      status: 201,
      response: networkVolume,
      errorStatuses: [400, 413, 422, 507],
      handle: async ({ caller, body: { dataCenter, ...fields } }) =>
        show(await volumes.create(caller, { ...fields, dataCenterId: dataCenter })),
    }),
    operation({
      id: 'getNetworkVolume',
      method: 'GET',
      path: '/network-volumes/{id}',
      tag,
      summary: 'Get a network volume',
      access: 'read',
      params: byId,
      status: 200,
      response: networkVolume,
      errorStatuses: [404],
      handle: async ({ caller, params }) => show(await volumes.get(caller, params.id)),
    }),
    operation({
      id: 'updateNetworkVolume',
      method: 'PATCH',
      path: '/network-volumes/{id}',
      tag,
      summary: 'Rename or grow a network volume',
      access: 'write',
      description: 'A volume only grows: a size below the present one is refused.',
      params: byId,
      body: named('UpdateNetworkVolume', object({}, { name, size }, { minProperties: 1 })),
      status: 200,
      response: networkVolume,
      errorStatuses: [400, 404, 413, 422, 507],
      handle: async ({ caller, params, body }) =>
        show(await volumes.update(caller, params.id, body, 'not-smaller')),
    }),
    operation({
      id: 'deleteNetworkVolume',
      method: 'DELETE',
      path: '/network-volumes/{id}',
      tag,
      summary: 'Delete a network volume and its data',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => volumes.remove(caller, params.id),
    }),
  ];
}

type NetworkVolumeResponse = Static<typeof networkVolume>;

function serializeDefinition(volume: NetworkVolume): Omit<NetworkVolumeResponse, 'used'> {
  return {
    id: volume.id,
    name: volume.name,
    size: volume.size,
    dataCenter: volume.dataCenterId,
    type: volume.type,
  };
}
