import { joinSshKeys, splitSshKeys } from '../../domain/ssh-keys.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isNearLimit } from '../../domain/quotas.ts';
import type { AccountLimits } from '../../resources/accounts/accounts.ts';
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

  "One limit of an account. used and limit are bytes, US dollars, or a number of things"
  type AccountLimit {
    name: String!
    used: Float!
    "null where there is none"
    limit: Float
    "80 % of it or more is used"
    warning: Boolean!
  }
  input AccountLimitInput {
    name: String!
    "null removes the limit"
    limit: Float
  }
  type ManagedAccount {
    id: String!
    name: String!
    "active, disabled or deleting"
    status: String!
  }

  extend type Query {
    myself: User
    "The limits of your account; operators may name another one"
    accountLimits(accountId: String): [AccountLimit!]
  }
  extend type Mutation {
    updateUserSettings(input: UpdateUserSettingsInput): User
    "For operators"
    updateAccountLimits(accountId: String!, limits: [AccountLimitInput!]!): [AccountLimit!]
    "For operators"
    disableAccount(accountId: String!): ManagedAccount
    "For operators"
    enableAccount(accountId: String!): ManagedAccount
    "For operators: deletes it with all that it owns"
    deleteAccount(accountId: String!): String
  }
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
      Query: {
        accountLimits: async ({ accountId }: { accountId?: string | null }, caller) =>
          serializeLimits(await accounts.limits(caller, accountId ?? undefined)),
      },
      Mutation: {
        updateAccountLimits: async (
          { accountId, limits }: { accountId: string; limits: { name: string; limit?: number | null }[] },
          caller,
        ) =>
          serializeLimits(
            await accounts.changeLimits(
              caller,
              accountId,
              Object.fromEntries(limits.map(({ name, limit }) => [name, limit ?? null])),
            ),
          ),
        disableAccount: ({ accountId }: { accountId: string }, caller) => accounts.disable(caller, accountId),
        enableAccount: ({ accountId }: { accountId: string }, caller) => accounts.enable(caller, accountId),
        deleteAccount: async ({ accountId }: { accountId: string }, caller) => {
          await accounts.remove(caller, accountId);
          return accountId;
        },
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

function serializeLimits({ usage }: AccountLimits) {
  return usage.map((entry) => ({ ...entry, warning: isNearLimit(entry) }));
}

/**
 * The operator owns the machines: there is no balance to run out of, and no quota unless the operator sets one.
 */
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
