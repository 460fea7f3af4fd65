import type { ResourceServices } from '../../resources/resources.ts';
import type { ApiKeyUpdate } from '../../resources/keys/api-keys.ts';
import type { AccessLevel, ApiKey, ScopeLevel, Scopes } from '../../domain/records.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const access = stringEnum(['ALL', 'READ_ONLY', 'RESTRICTED'], {
  description: 'Everything, reading everything, or what the scopes say',
});
const grant = stringEnum(['NONE', 'READ', 'WRITE']);
const endpoints = nullable(
  list(text(), {
    description: 'Endpoints that a restricted key may call; null is all. Refused for another key',
  }),
);
const expiresAt = nullable(dateTime('The key is invalid after this time; null: it does not expire'));
const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH });

const apiKeyFields = {
  id: text(),
  name: text(),
  access,
  scopes: object(
    { rest: grant, graphql: grant, serverless: grant },
    {},
    { description: 'For each family of interfaces' },
  ),
  endpoints,
  enabled: boolean(),
  createdAt: dateTime('When it was made'),
  lastUsedAt: nullable(dateTime('When it last opened something, to the minute')),
  expiresAt,
};

const apiKey = named('ApiKey', object(apiKeyFields, {}, { description: 'A key without its text' }));
const apiKeyList = named('ApiKeyList', object({ apiKeys: list(apiKey) }));
const newApiKey = named('NewApiKey', object({ ...apiKeyFields, key: text({ description: 'Shown once' }) }));
const settings = {
  scopes: object(
    {},
    { rest: grant, graphql: grant, serverless: grant },
    {
      description:
        'Of a restricted key; left out: NONE. Refused for another key, unless it is what that key has anyway',
    },
  ),
  endpoints,
  expiresAt,
};
const createApiKey = named('CreateApiKey', object({ name, access }, settings));
const updateApiKey = named(
  'UpdateApiKey',
  object({}, { name, access, enabled: boolean(), ...settings }, { minProperties: 1 }),
);

const ACCESS_LEVEL_BY_WORD: Record<Static<typeof access>, AccessLevel> = {
  ALL: 'all',
  READ_ONLY: 'read-only',
  RESTRICTED: 'restricted',
};
const GRANT_BY_WORD: Record<Static<typeof grant>, ScopeLevel> = {
  NONE: 'none',
  READ: 'read',
  WRITE: 'write',
};

export function apiKeyOperations({ keys }: ResourceServices): Operation[] {
  const tag = 'API keys';
  const create = async (
    caller: Parameters<typeof keys.create>[0],
    body: Static<typeof createApiKey>,
    accountId?: string,
  ): Promise<Static<typeof newApiKey>> => {
    const { record, key } = await keys.create(
      caller,
      { ...readFields(body), name: body.name, access: ACCESS_LEVEL_BY_WORD[body.access] },
      accountId,
    );
    return { ...serializeApiKey(record), key };
  };
  return [
    operation({
      id: 'listApiKeys',
      method: 'GET',
      path: '/account/api-keys',
      tag,
      summary: 'List the keys of your account',
      access: 'read',
      status: 200,
      response: apiKeyList,
      handle: async ({ caller }) => ({ apiKeys: (await keys.list(caller)).map(serializeApiKey) }),
    }),
    operation({
      id: 'createApiKey',
      method: 'POST',
      path: '/account/api-keys',
      tag,
      summary: 'Create a key',
      access: 'write',
      description: 'Needs a key with full access. The new key is in this answer and in no other.',
      body: createApiKey,
      status: 201,
      response: newApiKey,
      errorStatuses: [400, 413, 422],
      handle: ({ caller, body }) => create(caller, body),
    }),
    operation({
      id: 'updateApiKey',
      method: 'PATCH',
      path: '/account/api-keys/{id}',
      tag,
      summary: 'Update, disable or enable a key',
      access: 'write',
      params: byId,
      body: updateApiKey,
      status: 200,
      response: apiKey,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) =>
        serializeApiKey(await keys.update(caller, params.id, readFields(body))),
    }),
    operation({
      id: 'deleteApiKey',
      method: 'DELETE',
      path: '/account/api-keys/{id}',
      tag,
      summary: 'Revoke a key, with immediate effect',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => keys.revoke(caller, params.id),
    }),
    operation({
      id: 'listAccountApiKeys',
      method: 'GET',
      path: '/accounts/{id}/api-keys',
      tag: 'Accounts',
      summary: 'List the keys of an account',
      access: 'operator',
      params: byId,
      status: 200,
      response: apiKeyList,
      errorStatuses: [404],
      handle: async ({ caller, params }) => ({
        apiKeys: (await keys.list(caller, params.id)).map(serializeApiKey),
      }),
    }),
    operation({
      id: 'createAccountApiKey',
      method: 'POST',
      path: '/accounts/{id}/api-keys',
      tag: 'Accounts',
      summary: 'Create a key for an account',
      access: 'operator',
      params: byId,
      body: createApiKey,
      status: 201,
      response: newApiKey,
      errorStatuses: [400, 404, 413, 422],
      handle: ({ caller, params, body }) => create(caller, body, params.id),
    }),
  ];
}

function readFields({
  access: level,
  scopes,
  expiresAt: expires,
  ...same
}: Static<typeof updateApiKey>): ApiKeyUpdate {
  return {
    ...same,
    ...(level !== undefined && { access: ACCESS_LEVEL_BY_WORD[level] }),
    ...(scopes !== undefined && { scopes: readScopes(scopes) }),
    ...(expires !== undefined && { expiresAt: expires === null ? null : Date.parse(expires) }),
  };
}

function readScopes(scopes: Partial<Record<keyof Scopes, Static<typeof grant>>>): Partial<Scopes> {
  return Object.fromEntries(Object.entries(scopes).map(([family, word]) => [family, GRANT_BY_WORD[word]]));
}

function serializeApiKey(key: ApiKey): Static<typeof apiKey> {
  return {
    id: key.id,
    name: key.name,
    access: upper(key.access) as Static<typeof access>,
    scopes: {
      rest: upperGrant(key.scopes.rest),
      graphql: upperGrant(key.scopes.graphql),
      serverless: upperGrant(key.scopes.serverless),
    },
    endpoints: key.endpoints,
    enabled: key.enabled,
    createdAt: isoTime(key.createdAt),
    lastUsedAt: isoTimeOrNull(key.lastUsedAt),
    expiresAt: isoTimeOrNull(key.expiresAt),
  };
}

function upperGrant(word: ScopeLevel): Static<typeof grant> {
  return upper(word) as Static<typeof grant>;
}

function upper(word: string): string {
  return word.toUpperCase().replace('-', '_');
}
