import type { Catalog } from '../../resources/catalog/catalog.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { type NetworkVolume, type VolumeType, VOLUME_TYPES } from '../../domain/records.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import { networkVolumeToDeleteNotFound } from './graphql-client-errors.ts';
import { serializeDataCenter } from './data-centers.resolvers.ts';
import { checkName, requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { V1_VOLUME_SIZE_GB } from '../../domain/limits.ts';

const sdl = `
  "A disk that outlives what mounts it, in one data center"
  type NetworkVolume {
    id: String name: String "In GB" size: Int dataCenterId: String dataCenter: DataCenter type: String
  }
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

export function networkVolumeModule({ volumes, catalog }: ResourceServices): GraphqlModule {
  return {
    sdl,
    authenticatedResolvers: {
      Mutation: {
        createNetworkVolume: async (
          { input = {} }: { input?: { name?: string; size?: number; dataCenterId?: string; type?: string } },
          caller,
        ) => {
          const { name, size, dataCenterId, type } = requireFields(input, 'name', 'size', 'dataCenterId');
          const fields = {
            name: checkName(name),
            size: checkVolumeSize(size),
            dataCenterId,
            ...(type !== undefined && { type: parseVolumeType(type) }),
          };
          return serializeNetworkVolume(await volumes.create(caller, fields), catalog);
        },
        updateNetworkVolume: async (
          { input = {} }: { input?: { id?: string; name?: string; size?: number } },
          caller,
        ) => {
          const { id, name, size } = requireFields(input, 'id');
          const change = {
            ...(name !== undefined && { name: checkName(name) }),
            ...(size !== undefined && { size: checkVolumeSize(size) }),
          };
          return serializeNetworkVolume(await volumes.update(caller, id, change, 'larger'), catalog);
        },
        deleteNetworkVolume: async ({ input = {} }: { input?: { id?: string } }, caller) => {
          const { id } = requireFields(input, 'id');
          try {
            await volumes.remove(caller, id);
          } catch (error) {
            throw error instanceof BerthError && error.code === 'not-found'
              ? networkVolumeToDeleteNotFound(id)
              : error;
          }
          return null;
        },
      },
      User: {
        networkVolumes: async (_args: unknown, caller) =>
          (await volumes.list(caller)).map((volume) => serializeNetworkVolume(volume, catalog)),
      },
    },
  };
}

function checkVolumeSize(size: number): number {
  const { minimum, maximum } = V1_VOLUME_SIZE_GB;
  if (size < minimum || size > maximum)
    throw ruleError(`size must be a whole number of GB from ${minimum} to ${maximum}, got ${size}`);
  return size;
}

function parseVolumeType(word: string): VolumeType {
  const type = VOLUME_TYPES.find((known) => known === word.toUpperCase());
  if (type === undefined) throw ruleError(`type must be one of ${VOLUME_TYPES.join(', ')}`);
  return type;
}

/** A volume whose data center is no longer in the configuration is still there, and shown without it. */
export function serializeNetworkVolume(
  { id, name, size, dataCenterId, type }: NetworkVolume,
  catalog: Catalog,
) {
  const dataCenter = catalog.dataCenters({ ids: [dataCenterId] })[0];
  return {
    id,
    name,
    size,
    dataCenterId,
    dataCenter: dataCenter === undefined ? null : serializeDataCenter(dataCenter),
    type,
  };
}
