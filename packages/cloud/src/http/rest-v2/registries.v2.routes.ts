import type { ResourceServices } from '../../resources/resources.ts';
import { dockerRegistryUri } from '../../resources/registries/registry-delegations.ts';
import type { Registry, RegistryDelegation } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, nullable, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const registry = named(
  'Registry',
  object(
    { id: text(), name: text() },
    {},
    { description: 'Saved credentials for private images. What was saved is never shown' },
  ),
);

const delegation = named(
  'EcrDelegation',
  object(
    {
      id: text(),
      name: nullable(text()),
      delegatorUserId: text({ description: 'The account that recorded it' }),
      awsUser: text(),
      repository: text(),
      tag: text(),
      awsRegion: text(),
      dockerRegistryUri: text(),
      createdAt: dateTime('When it was recorded'),
    },
    {},
    { description: 'Access to an ECR repository without saved credentials (beta)' },
  ),
);

const createRegistry = named(
  'CreateRegistry',
  object({
    name: text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Unique in the account' }),
    username: text({ minLength: 1, description: 'Never returned' }),
    password: text({ minLength: 1, description: 'Never returned' }),
  }),
);

export function registryOperations({ registries, delegations }: ResourceServices): Operation[] {
  const tag = 'Registries';
  return [
    operation({
      id: 'listRegistries',
      method: 'GET',
      path: '/registries',
      tag,
      summary: 'List your registries, newest first',
      access: 'read',
      status: 200,
      response: named('RegistryList', object({ registries: list(registry) })),
      handle: async ({ caller }) => ({ registries: (await registries.list(caller)).map(serializeRegistry) }),
    }),
    operation({
      id: 'createRegistry',
      method: 'POST',
      path: '/registries',
      tag,
      summary: 'Save registry credentials',
      access: 'write',
      body: createRegistry,
      status: 201,
      response: registry,
      errorStatuses: [400, 413, 422],
      handle: async ({ caller, body }) => serializeRegistry(await registries.create(caller, body)),
    }),
    operation({
      id: 'listDelegations',
      method: 'GET',
      path: '/registries/delegations',
      tag,
      summary: 'List registry delegations (beta)',
      access: 'read',
      status: 200,
      response: named('EcrDelegationList', object({ delegations: list(delegation) })),
      handle: async ({ caller }) => ({
        delegations: (await delegations.list(caller)).map(serializeDelegation),
      }),
    }),
    operation({
      id: 'createDelegation',
      method: 'POST',
      path: '/registries/delegations',
      tag,
      summary: 'Record a registry delegation (beta)',
      access: 'write',
      body: named(
        'CreateEcrDelegation',
        object(
          { resource: text({ minLength: 1, description: 'ARN of the ECR repository' }) },
          { name: nullable(text({ maxLength: MAX_NAME_LENGTH })) },
        ),
      ),
      status: 201,
      response: delegation,
      errorStatuses: [400, 413, 422],
      handle: async ({ caller, body }) =>
        serializeDelegation(await delegations.create(caller, body.resource, body.name ?? null)),
    }),
    operation({
      id: 'deleteDelegation',
      method: 'DELETE',
      path: '/registries/delegations/{id}',
      tag,
      summary: 'Remove a registry delegation (beta)',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [404],
      handle: ({ caller, params }) => delegations.remove(caller, params.id),
    }),
    operation({
      id: 'getRegistry',
      method: 'GET',
      path: '/registries/{id}',
      tag,
      summary: 'Get a registry',
      access: 'read',
      params: byId,
      status: 200,
      response: registry,
      errorStatuses: [404],
      handle: async ({ caller, params }) => serializeRegistry(await registries.get(caller, params.id)),
    }),
    operation({
      id: 'deleteRegistry',
      method: 'DELETE',
      path: '/registries/{id}',
      tag,
      summary: 'Delete saved credentials; templates lose the reference',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => registries.remove(caller, params.id),
    }),
  ];
}

function serializeRegistry({ id, name }: Registry): Static<typeof registry> {
  return { id, name };
}

function serializeDelegation(found: RegistryDelegation): Static<typeof delegation> {
  return {
    id: found.id,
    name: found.name,
    delegatorUserId: found.accountId,
    awsUser: found.awsUser,
    repository: found.repository,
    tag: found.tag,
    awsRegion: found.awsRegion,
    dockerRegistryUri: dockerRegistryUri(found),
    createdAt: isoTime(found.createdAt),
  };
}
