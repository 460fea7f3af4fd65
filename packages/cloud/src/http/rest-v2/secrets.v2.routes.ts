import type { ResourceServices } from '../../resources/resources.ts';
import type { Secret } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, nullable, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import {
  MAX_NAME_LENGTH,
  MAX_SECRET_VALUE_BYTES,
  SECRET_NAME_PATTERN,
  MAX_SECRET_DESCRIPTION_LENGTH,
} from '../../domain/limits.ts';

const secret = named(
  'Secret',
  object(
    {
      id: text(),
      name: text(),
      description: nullable(text()),
      createdAt: dateTime('When it was made'),
      valueLastUpdatedAt: nullable(dateTime('When its value was last set')),
    },
    {},
    {
      description:
        'A stored value that environments refer to as {{ RUNPOD_SECRET_name }}. The value is never shown',
    },
  ),
);

const value = text({ minLength: 1, description: 'Never returned; containers that start later see it' });
const description = text({ maxLength: MAX_SECRET_DESCRIPTION_LENGTH, description: 'For people' });
/** The value may be large; JSON may write a byte as six. */
const bodyLimit = MAX_SECRET_VALUE_BYTES * 2;

export function secretOperations({ secrets }: ResourceServices): Operation[] {
  const tag = 'Account';
  return [
    operation({
      id: 'listSecrets',
      method: 'GET',
      path: '/account/secrets',
      tag,
      summary: 'List your secrets, newest first',
      access: 'read',
      query: object({}, { name: text({ description: 'Only the secret of this name, in any case' }) }),
      status: 200,
      response: named('SecretList', object({ secrets: list(secret) })),
      handle: async ({ caller, query }) => {
        const all = await secrets.list(caller);
        const wanted = query.name?.toLowerCase();
        return {
          secrets: all
            .filter(({ name }) => wanted === undefined || name.toLowerCase() === wanted)
            .map(serializeSecret),
        };
      },
    }),
    operation({
      id: 'createSecret',
      method: 'POST',
      path: '/account/secrets',
      tag,
      summary: 'Create a secret',
      access: 'write',
      bodyLimit,
      body: named(
        'CreateSecret',
        object(
          {
            name: text({
              minLength: 1,
              maxLength: MAX_NAME_LENGTH,
              pattern: SECRET_NAME_PATTERN,
              description: 'Unique; must not start with RUNPOD',
            }),
            value,
          },
          { description },
        ),
      ),
      status: 201,
      response: secret,
      errorStatuses: [400, 409, 413, 422],
      handle: async ({ caller, body }) =>
        serializeSecret(
          await secrets.create(caller, {
            name: body.name,
            value: body.value,
            description: body.description === '' ? null : (body.description ?? null),
          }),
        ),
    }),
    operation({
      id: 'getSecret',
      method: 'GET',
      path: '/account/secrets/{id}',
      tag,
      summary: 'Get a secret, without its value',
      access: 'read',
      params: byId,
      status: 200,
      response: secret,
      errorStatuses: [404],
      handle: async ({ caller, params }) => serializeSecret(await secrets.get(caller, params.id)),
    }),
    operation({
      id: 'updateSecret',
      method: 'PATCH',
      path: '/account/secrets/{id}',
      tag,
      summary: 'Set a new value or description',
      access: 'write',
      bodyLimit,
      description: 'The name stays. An empty description removes it. What runs already keeps the old value.',
      params: byId,
      body: named('UpdateSecret', object({}, { value, description }, { minProperties: 1 })),
      status: 200,
      response: secret,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) => {
        const change = {
          ...(body.value !== undefined && { value: body.value }),
          ...(body.description !== undefined && {
            description: body.description === '' ? null : body.description,
          }),
        };
        return serializeSecret(await secrets.update(caller, params.id, change));
      },
    }),
    operation({
      id: 'deleteSecret',
      method: 'DELETE',
      path: '/account/secrets/{id}',
      tag,
      summary: 'Delete a secret',
      access: 'write',
      description: 'What refers to it can no longer start.',
      params: byId,
      status: 204,
      errorStatuses: [404],
      handle: ({ caller, params }) => secrets.remove(caller, params.id),
    }),
  ];
}

function serializeSecret(found: Secret): Static<typeof secret> {
  return {
    id: found.id,
    name: found.name,
    description: found.description,
    createdAt: isoTime(found.createdAt),
    valueLastUpdatedAt: isoTime(found.valueUpdatedAt),
  };
}
