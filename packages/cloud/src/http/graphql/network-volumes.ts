import type { Catalog } from '../../resources/catalog/catalog.ts';
import type { Resources } from '../../resources/resources.ts';
import { V1_VOLUME_SIZE } from '../../resources/volumes/volumes.ts';
import type { NetworkVolume, VolumeType } from '../../store/records.ts';
import { BerthError, rule } from '../../support/errors.ts';
import { deletedNoVolume } from './client-sentences.ts';
import { showDataCenter } from './data-centers.ts';
import { checkName, required } from './inputs.ts';
import type { Part } from './part.ts';

const sdl = `
  "A disk that outlives what mounts it, in one data center"
  type NetworkVolume { id: String name: String "In GB" size: Int dataCenterId: String dataCenter: DataCenter type: String }
  input CreateNetworkVolumeInput {
    name: String
    size: Int
    dataCenterId: String
    "STANDARD or HIGH_PERFORMANCE"
    type: String
  }
  "A volume only grows"
  input UpdateNetworkVolumeInput { id: String name: String size: Int }
  input DeleteNetworkVolumeInput { id: String }

  extend type Mutation {
    createNetworkVolume(input: CreateNetworkVolumeInput): NetworkVolume
    updateNetworkVolume(input: UpdateNetworkVolumeInput): NetworkVolume
    deleteNetworkVolume(input: DeleteNetworkVolumeInput): Void
  }
  extend type User { networkVolumes: [NetworkVolume] }
`;

const TYPES: readonly VolumeType[] = ['STANDARD', 'HIGH_PERFORMANCE'];

export function networkVolumePart({ volumes, catalog }: Resources): Part {
  return {
    sdl,
    keyed: {
      Mutation: {
        createNetworkVolume: async (
          { input = {} }: { input?: { name?: string; size?: number; dataCenterId?: string; type?: string } },
          caller,
        ) => {
          const { name, size, dataCenterId, type } = required(input, 'name', 'size', 'dataCenterId');
          const fields = {
            name: checkName(name),
            size: checkSize(size),
            dataCenterId,
            ...(type !== undefined && { type: typeOf(type) }),
          };
          return showVolume(await volumes.create(caller, fields), catalog);
        },
        updateNetworkVolume: async (
          { input = {} }: { input?: { id?: string; name?: string; size?: number } },
          caller,
        ) => {
          const { id, name, size } = required(input, 'id');
          const change = {
            ...(name !== undefined && { name: checkName(name) }),
            ...(size !== undefined && { size: checkSize(size) }),
          };
          return showVolume(await volumes.update(caller, id, change, 'larger'), catalog);
        },
        deleteNetworkVolume: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          const { id } = required(input, 'id');
          try {
            await volumes.remove(caller, id);
          } catch (error) {
            throw error instanceof BerthError && error.code === 'not-found' ? deletedNoVolume(id) : error;
          }
          return null;
        },
      },
      User: {
        networkVolumes: async (_args: unknown, caller) =>
          (await volumes.list(caller)).map((volume) => showVolume(volume, catalog)),
      },
    },
  };
}

function checkSize(size: number): number {
  const { minimum, maximum } = V1_VOLUME_SIZE;
  if (size < minimum || size > maximum)
    throw rule(`size must be a whole number of GB from ${minimum} to ${maximum}, got ${size}`);
  return size;
}

function typeOf(word: string): VolumeType {
  const type = TYPES.find((known) => known === word.toUpperCase());
  if (type === undefined) throw rule(`type must be one of ${TYPES.join(', ')}`);
  return type;
}

/** A volume whose data center is no longer in the configuration is still there, and shown without it. */
export function showVolume({ id, name, size, dataCenterId, type }: NetworkVolume, catalog: Catalog) {
  const dataCenter = catalog.dataCenters({ ids: [dataCenterId] })[0];
  return {
    id,
    name,
    size,
    dataCenterId,
    dataCenter: dataCenter === undefined ? null : showDataCenter(dataCenter),
    type,
  };
}
