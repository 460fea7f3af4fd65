import type { Resources } from '../../resources/resources.ts';
import type { ApiKey } from '../../store/records.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import { instantOf, required } from './inputs.ts';
import { readPermissions, writePermissions } from './key-permissions.ts';
import type { Part } from './part.ts';

const PERMISSIONS =
  '"ALL, READ_ONLY, or JSON text such as {\\"rest\\":\\"write\\",\\"graphql\\":\\"read\\",\\"serverless\\":\\"none\\",\\"endpoints\\":[\\"id\\"]}"';

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

export function apiKeyPart({ keys }: Resources): Part {
  return {
    sdl,
    keyed: {
      Mutation: {
        createApiKey: async (
          { input = {} }: { input?: { name?: string; permissions?: string; expiresAt?: unknown } },
          caller,
        ) => {
          const { name, permissions, expiresAt } = required(input, 'name', 'permissions');
          const { record, key } = await keys.create(caller, {
            name,
            ...readPermissions(permissions),
            ...(expiresAt !== undefined && { expiresAt: instantOf('expiresAt', expiresAt) }),
          });
          return { ...show(record), key };
        },
        updateApiKey: async (
          { input = {} }: { input?: { id?: string; name?: string; permissions?: string; enabled?: boolean } },
          caller,
        ) => {
          const { id, permissions, ...same } = required(input, 'id');
          return show(
            await keys.update(caller, id, {
              ...same,
              ...(permissions !== undefined && readPermissions(permissions)),
            }),
          );
        },
        deleteApiKey: async (args: { id?: string }, caller) => {
          await keys.revoke(caller, required(args, 'id').id);
          return null;
        },
      },
      User: { apiKeys: async (_args: unknown, caller) => (await keys.list(caller)).map(show) },
    },
  };
}

function show(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    permissions: writePermissions(key),
    enabled: key.enabled,
    createdAt: isoTime(key.createdAt),
    lastUsed: isoTimeOrNull(key.lastUsedAt),
    expiresAt: isoTimeOrNull(key.expiresAt),
  };
}
