import type { ResourceServices } from '../../resources/resources.ts';
import type { Registry } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const registry = named(
  'ContainerRegistryAuth',
  object({ id: text(), name: text() }, {}, { description: 'Saved credentials for private images' }),
);
const byRegistryId = object({ containerRegistryAuthId: text({ minLength: 1 }) });

export function registryOperations({ registries }: ResourceServices): Operation[] {
  const tag = 'Container registry authentications';
  return [
    operation({
      id: 'createContainerRegistryAuth',
      method: 'POST',
      path: '/containerregistryauth',
      tag,
      summary: 'Save registry credentials',
      access: 'write',
      body: named(
        'ContainerRegistryAuthCreateInput',
        object({
          name: text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Unique in the account' }),
          username: text({ minLength: 1 }),
          password: text({ minLength: 1 }),
        }),
      ),
      status: 200,
      response: registry,
      errorStatuses: [400],
      handle: async ({ caller, body }) => serializeRegistry(await registries.create(caller, body)),
    }),
    operation({
      id: 'listContainerRegistryAuths',
      method: 'GET',
      path: '/containerregistryauth',
      tag,
      summary: 'List registry credentials',
      access: 'read',
      status: 200,
      response: list(registry),
      handle: async ({ caller }) => (await registries.list(caller)).map(serializeRegistry),
    }),
    operation({
      id: 'getContainerRegistryAuth',
      method: 'GET',
      path: '/containerregistryauth/{containerRegistryAuthId}',
      tag,
      summary: 'Get registry credentials, without the secret part',
      access: 'read',
      params: byRegistryId,
      status: 200,
      response: registry,
      errorStatuses: [404],
      handle: async ({ caller, params }) =>
        serializeRegistry(await registries.get(caller, params.containerRegistryAuthId)),
    }),
    operation({
      id: 'deleteContainerRegistryAuth',
      method: 'DELETE',
      path: '/containerregistryauth/{containerRegistryAuthId}',
      tag,
      summary: 'Delete registry credentials',
      access: 'write',
      params: byRegistryId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => registries.remove(caller, params.containerRegistryAuthId),
    }),
  ];
}

function serializeRegistry({ id, name }: Registry): Static<typeof registry> {
  return { id, name };
}
