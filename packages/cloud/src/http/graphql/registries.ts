import type { Resources } from '../../resources/resources.ts';
import type { Registry } from '../../store/records.ts';
import { checkName, required } from './inputs.ts';
import type { Part } from './part.ts';

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

export function registryPart({ registries }: Resources): Part {
  return {
    sdl,
    keyed: {
      Mutation: {
        saveRegistryAuth: async ({ input = {} }: { input?: Credentials & { name?: string } }, caller) => {
          const { name, username, password } = required(input, 'name', 'username', 'password');
          return show(await registries.create(caller, { name: checkName(name), username, password }));
        },
        updateRegistryAuth: async ({ input = {} }: { input?: Credentials & { id?: string } }, caller) => {
          const { id, username, password } = required(input, 'id', 'username', 'password');
          return show(await registries.replaceCredentials(caller, id, { username, password }));
        },
        deleteRegistryAuth: async (args: { registryAuthId?: string }, caller) => {
          await registries.remove(caller, required(args, 'registryAuthId').registryAuthId);
          return null;
        },
      },
      User: {
        containerRegistryCreds: async (_args: unknown, caller) =>
          (await registries.list(caller)).toReversed().map(show),
      },
    },
  };
}

function show({ id, name, accountId }: Registry) {
  return { id, name, userId: accountId };
}
