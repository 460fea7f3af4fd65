import { joinSshKeys, splitSshKeys } from '../../domain/ssh-keys.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { Account } from '../../domain/records.ts';
import type { RequestContext } from './graphql-request-context.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  "The account of the key that was shown"
  type User {
    id: String
    authId: String
    email: String
    "SSH keys, a blank line between them"
    pubKey: String
    clientBalance: Float
    spendLimit: Float
    minBalance: Float
    underBalance: Boolean
    machineQuota: Int
    maxServerlessConcurrency: Int
    notifyPodsStale: Boolean
    notifyPodsGeneral: Boolean
    notifyLowBalance: Boolean
    notifyOther: Boolean
    signedTermsOfService: Boolean
    multiFactorEnabled: Boolean
    isTeam: Boolean
  }
  input UpdateUserSettingsInput {
    "All keys; empty removes every one"
    pubKey: String @mayBeEmpty
    notifyPodsStale: Boolean
    notifyPodsGeneral: Boolean
    notifyLowBalance: Boolean
    notifyOther: Boolean
  }

  extend type Query { myself: User }
  extend type Mutation { updateUserSettings(input: UpdateUserSettingsInput): User }
`;

export function accountModule({ accounts }: ResourceServices): GraphqlModule {
  return {
    sdl,
    // Clients ask this without a key to learn whether they have one.
    publicResolvers: {
      Query: {
        myself: async (_args: unknown, context: RequestContext) =>
          context.authenticated ? serializeUser(await accounts.getOwn(context.caller)) : null,
      },
    },
    authenticatedResolvers: {
      Mutation: {
        // No mail is sent from here, so there is nothing that the notify settings could switch.
        updateUserSettings: async ({ input = {} }: { input?: { pubKey?: string } }, caller) =>
          serializeUser(
            input.pubKey === undefined
              ? await accounts.getOwn(caller)
              : await accounts.replaceSshKeys(caller, splitSshKeys(input.pubKey)),
          ),
      },
    },
  };
}

/** Whoever hosts Berth owns the machines: there is no balance to run out of, and no quota that nobody has set. */
function serializeUser({ id, sshKeys }: Account) {
  return {
    id,
    authId: id,
    email: null,
    pubKey: joinSshKeys(sshKeys),
    clientBalance: 0,
    spendLimit: null,
    minBalance: 0,
    underBalance: false,
    machineQuota: null,
    maxServerlessConcurrency: null,
    notifyPodsStale: false,
    notifyPodsGeneral: false,
    notifyLowBalance: false,
    notifyOther: false,
    signedTermsOfService: true,
    multiFactorEnabled: false,
    isTeam: false,
  };
}
