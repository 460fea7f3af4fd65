import type { ResourceServices } from '../../resources/resources.ts';
import type { ApiKey } from '../../domain/records.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import { parseDateTime, requireFields } from './graphql-input-checks.ts';
import { parsePermissions, formatPermissions } from './api-key-permissions.ts';
import type { GraphqlModule } from './graphql-module.ts';

const PERMISSIONS =
  '"ALL, READ_ONLY, or JSON text such as ' +
  '{\\"rest\\":\\"write\\",\\"graphql\\":\\"read\\",\\"serverless\\":\\"none\\",\\"endpoints\\":[\\"id\\"]}"';

const sdl = `
  "A key without its text"
  type ApiKey {
    id: ID
    name: String
    ${PERMISSIONS}
    permissions: String
    enabled: Boolean
    createdAt: DateTime
    "To the minute"
    lastUsed: DateTime
    expiresAt: DateTime
  }
  type ApiKeyWithSecret {
    id: ID
    name: String
    permissions: String
    createdAt: DateTime
    expiresAt: DateTime
    "Shown once"
    key: String
  }
  input CreateApiKeyInput {
    name: String
    ${PERMISSIONS}
    permissions: String
    expiresAt: DateTime
  }
  input UpdateApiKeyInput { id: ID name: String permissions: String enabled: Boolean }

  extend type Mutation {
    createApiKey(input: CreateApiKeyInput): ApiKeyWithSecret
    updateApiKey(input: UpdateApiKeyInput): ApiKey
    "It holds at once"
    deleteApiKey(id: ID): Void
  }
  extend type User { apiKeys: [ApiKey] }
`;

export function apiKeyModule({ keys }: ResourceServices): GraphqlModule {
  return {
    sdl,
    authenticatedResolvers: {
      Mutation: {
        createApiKey: async (
          { input = {} }: { input?: { name?: string; permissions?: string; expiresAt?: unknown } },
          caller,
        ) => {
          const { name, permissions, expiresAt } = requireFields(input, 'name', 'permissions');
          const { record, key } = await keys.create(caller, {
            name,
            ...parsePermissions(permissions),
            ...(expiresAt !== undefined && { expiresAt: parseDateTime('expiresAt', expiresAt) }),
          });
          return { ...serializeApiKey(record), key };
        },
        updateApiKey: async (
          { input = {} }: { input?: { id?: string; name?: string; permissions?: string; enabled?: boolean } },
          caller,
        ) => {
          const { id, permissions, ...same } = requireFields(input, 'id');
          return serializeApiKey(
            await keys.update(caller, id, {
              ...same,
              ...(permissions !== undefined && parsePermissions(permissions)),
            }),
          );
        },
        deleteApiKey: async (args: { id?: string }, caller) => {
          await keys.revoke(caller, requireFields(args, 'id').id);
          return null;
        },
      },
      User: { apiKeys: async (_args: unknown, caller) => (await keys.list(caller)).map(serializeApiKey) },
    },
  };
}

function serializeApiKey(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    permissions: formatPermissions(key),
    enabled: key.enabled,
    createdAt: isoTime(key.createdAt),
    lastUsed: isoTimeOrNull(key.lastUsedAt),
    expiresAt: isoTimeOrNull(key.expiresAt),
  };
}
