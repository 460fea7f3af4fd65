import type { ResourceServices } from '../../resources/resources.ts';
import type { Registry } from '../../domain/records.ts';
import { checkName, requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  "Saved credentials for private images. What was saved is never shown"
  type ContainerRegistryAuth { id: String name: String userId: String }
  input SaveRegistryAuthInput { name: String username: String password: String }
  input UpdateRegistryAuthInput { id: String username: String password: String }

  extend type Mutation {
    saveRegistryAuth(input: SaveRegistryAuthInput): ContainerRegistryAuth
    updateRegistryAuth(input: UpdateRegistryAuthInput): ContainerRegistryAuth
    "Templates lose the reference"
    deleteRegistryAuth(registryAuthId: String): Void
  }
  extend type User {
    "Oldest first"
    containerRegistryCreds: [ContainerRegistryAuth]
  }
`;

interface Credentials {
  username?: string;
  password?: string;
}

export function registryModule({ registries }: ResourceServices): GraphqlModule {
  return {
    sdl,
    authenticatedResolvers: {
      Mutation: {
        saveRegistryAuth: async ({ input = {} }: { input?: Credentials & { name?: string } }, caller) => {
          const { name, username, password } = requireFields(input, 'name', 'username', 'password');
          return serializeRegistry(
            await registries.create(caller, { name: checkName(name), username, password }),
          );
        },
        updateRegistryAuth: async ({ input = {} }: { input?: Credentials & { id?: string } }, caller) => {
          const { id, username, password } = requireFields(input, 'id', 'username', 'password');
          return serializeRegistry(await registries.replaceCredentials(caller, id, { username, password }));
        },
        deleteRegistryAuth: async (args: { registryAuthId?: string }, caller) => {
          await registries.remove(caller, requireFields(args, 'registryAuthId').registryAuthId);
          return null;
        },
      },
      User: {
        containerRegistryCreds: async (_args: unknown, caller) =>
          (await registries.list(caller)).toReversed().map(serializeRegistry),
      },
    },
  };
}

function serializeRegistry({ id, name, accountId }: Registry) {
  return { id, name, userId: accountId };
}
