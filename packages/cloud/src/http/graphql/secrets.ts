import type { Resources } from '../../resources/resources.ts';
import type { Secret } from '../../store/records.ts';
import { isoTime } from '../../support/clock.ts';
import { required } from './inputs.ts';
import type { Part } from './part.ts';

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

export function secretPart({ secrets }: Resources): Part {
  return {
    sdl,
    keyed: {
      Query: {
        secret: async (args: { id?: string }, caller) =>
          show(await secrets.get(caller, required(args, 'id').id)),
      },
      Mutation: {
        secretCreate: async (
          { input = {} }: { input?: { name?: string; value?: string; description?: string } },
          caller,
        ) => {
          const { name, value, description = null } = required(input, 'name', 'value');
          return show(await secrets.create(caller, { name, value, description }));
        },
        secretValueUpdate: async ({ input = {} }: { input?: { id?: string; value?: string } }, caller) => {
          const { id, value } = required(input, 'id', 'value');
          return show(await secrets.update(caller, id, { value }));
        },
        secretDescriptionUpdate: async (
          { input = {} }: { input?: { id?: string; description?: string } },
          caller,
        ) => {
          const { id, description = null } = required(input, 'id');
          return show(await secrets.update(caller, id, { description }));
        },
        secretDelete: async (args: { id?: string }, caller) => {
          await secrets.remove(caller, required(args, 'id').id);
          return null;
        },
      },
      User: { secrets: async (_args: unknown, caller) => (await secrets.list(caller)).map(show) },
    },
  };
}

function show({ id, name, description, createdAt, updatedAt, valueUpdatedAt }: Secret) {
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
