import type { ResourceServices } from '../../resources/resources.ts';
import type { Secret } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import { requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  "A stored value that environments refer to as {{ RUNPOD_SECRET_name }}. The value is never shown"
  type Secret {
    id: ID
    name: String
    description: String
    createdAt: DateTime
    updatedAt: DateTime
    "When the value was last set"
    lastUpdatedAt: DateTime
    "Not recorded here"
    lastRetrievedAt: DateTime
  }
  input SecretCreateInput { name: String value: String description: String }
  input SecretValueUpdateInput { id: ID value: String }
  "Without a description, the present one is removed"
  input SecretDescriptionUpdateInput { id: ID description: String }

  extend type Query { secret(id: ID): Secret }
  extend type Mutation {
    secretCreate(input: SecretCreateInput): Secret
    secretValueUpdate(input: SecretValueUpdateInput): Secret
    secretDescriptionUpdate(input: SecretDescriptionUpdateInput): Secret
    secretDelete(id: ID): Void
  }
  extend type User { secrets: [Secret] }
`;

export function secretModule({ secrets }: ResourceServices): GraphqlModule {
  return {
    sdl,
    authenticatedResolvers: {
      Query: {
        secret: async (args: { id?: string }, caller) =>
          serializeSecret(await secrets.get(caller, requireFields(args, 'id').id)),
      },
      Mutation: {
        secretCreate: async (
          { input = {} }: { input?: { name?: string; value?: string; description?: string } },
          caller,
        ) => {
          const { name, value, description = null } = requireFields(input, 'name', 'value');
          return serializeSecret(await secrets.create(caller, { name, value, description }));
        },
        secretValueUpdate: async ({ input = {} }: { input?: { id?: string; value?: string } }, caller) => {
          const { id, value } = requireFields(input, 'id', 'value');
          return serializeSecret(await secrets.update(caller, id, { value }));
        },
        secretDescriptionUpdate: async (
          { input = {} }: { input?: { id?: string; description?: string } },
          caller,
        ) => {
          const { id, description = null } = requireFields(input, 'id');
          return serializeSecret(await secrets.update(caller, id, { description }));
        },
        secretDelete: async (args: { id?: string }, caller) => {
          await secrets.remove(caller, requireFields(args, 'id').id);
          return null;
        },
      },
      User: { secrets: async (_args: unknown, caller) => (await secrets.list(caller)).map(serializeSecret) },
    },
  };
}

function serializeSecret({ id, name, description, createdAt, updatedAt, valueUpdatedAt }: Secret) {
  return {
    id,
    name,
    description,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    lastUpdatedAt: isoTime(valueUpdatedAt),
    lastRetrievedAt: null,
  };
}
