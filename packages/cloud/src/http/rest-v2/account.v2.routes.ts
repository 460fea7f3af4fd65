import type { AllServices } from '../../resources/resources.ts';
import { SSH_KEY_PATTERN } from '../../domain/ssh-keys.ts';
import type { Account } from '../../domain/records.ts';
import { isoTime } from '../../support/clock.ts';
import type { AccountLimits } from '../../resources/accounts/accounts.ts';
import { isNearLimit, MAX_COUNTED_JOBS, QUOTA_DESCRIPTIONS, QUOTA_NAMES } from '../../domain/quotas.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, list, named, nullable, number, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const account = named(
  'Account',
  object(
    {
      id: text(),
      name: text(),
      status: stringEnum(['active', 'disabled', 'deleting'], {
        description: 'Keys of an account that is not active do not work',
      }),
      createdAt: dateTime('When it was made'),
    },
    {},
    { description: 'Owns everything else' },
  ),
);
const sshKeys = named(
  'SshKeys',
  object({ keys: list(text(), { description: 'Public keys, one line of authorized_keys each' }) }),
);
const limitUsage = object(
  {
    name: stringEnum(QUOTA_NAMES),
    used: number({ description: 'Bytes, US dollars, or how many' }),
    limit: nullable(number({ description: 'Null where there is none' })),
    warning: boolean({ description: 'Whether 80 % of it or more is used' }),
  },
  {
    estimated: boolean({
      description: `Where \`used\` is an estimate: bytes of requests, where more than ${MAX_COUNTED_JOBS} jobs wait`,
    }),
  },
);
const accountLimits = named(
  'AccountLimits',
  object({ accountId: text(), limits: list(limitUsage, { description: 'Every limit, whether set or not' }) }),
);
const limitValues = object(
  {},
  Object.fromEntries(
    QUOTA_NAMES.map((name) => [
      name,
      nullable(number({ minimum: 0, description: `Of ${QUOTA_DESCRIPTIONS[name]}; null removes the limit` })),
    ]),
  ),
);
const accountParams = object({ accountId: text({ description: 'The id of the account' }) });

export function accountOperations({
  accounts,
  webhookSecretFor,
}: Pick<AllServices, 'accounts' | 'webhookSecretFor'>): Operation[] {
  const tag = 'Account';
  return [
    operation({
      id: 'getAccount',
      method: 'GET',
      path: '/account',
      tag,
      summary: 'The account of this key',
      access: 'read',
      status: 200,
      response: account,
      handle: async ({ caller }) => serializeAccount(await accounts.getOwn(caller)),
    }),
    operation({
      id: 'getSshKeys',
      method: 'GET',
      path: '/account/ssh-keys',
      tag,
      summary: 'The SSH keys of your account',
      access: 'read',
      status: 200,
      response: sshKeys,
      handle: async ({ caller }) => ({ keys: (await accounts.getOwn(caller)).sshKeys }),
    }),
    operation({
      id: 'updateSshKeys',
      method: 'PUT',
      path: '/account/ssh-keys',
      tag,
      summary: 'Replace all SSH keys of your account',
      access: 'write',
      body: named(
        'UpdateSshKeys',
        object({
          keys: list(text({ pattern: SSH_KEY_PATTERN }), {
            description: 'All of them; an empty list removes every key',
          }),
        }),
      ),
      status: 200,
      response: sshKeys,
      errorStatuses: [413, 422],
      handle: async ({ caller, body }) => ({
        keys: (await accounts.replaceSshKeys(caller, body.keys)).sshKeys,
      }),
    }),
    operation({
      id: 'getWebhookSecret',
      method: 'GET',
      path: '/account/webhook-secret',
      tag,
      summary: 'What the webhooks of your account are signed with',
      access: 'write',
      description:
        'The key of the HMAC in X-Berth-Signature. Whoever has it can make webhooks that look like ' +
        'yours, so a key that may only read does not get it.',
      status: 200,
      response: named(
        'WebhookSecret',
        object({
          secret: text({ description: 'The whole text is the key of the HMAC', examples: ['whsec_…'] }),
        }),
      ),
      handle: async ({ caller }) => ({ secret: webhookSecretFor(caller.accountId) }),
    }),
    operation({
      id: 'getAccountLimits',
      method: 'GET',
      path: '/account/limits',
      tag,
      summary: 'The limits of your account, and what is used of them',
      access: 'read',
      status: 200,
      response: accountLimits,
      handle: async ({ caller }) => serializeLimits(await accounts.limits(caller)),
    }),
    operation({
      id: 'listAccounts',
      method: 'GET',
      path: '/accounts',
      tag: 'Accounts',
      summary: 'List every account of this installation',
      access: 'operator',
      status: 200,
      response: named('AccountList', object({ accounts: list(account) })),
      handle: async ({ caller }) => ({ accounts: (await accounts.list(caller)).map(serializeAccount) }),
    }),
    operation({
      id: 'getLimitsOfAccount',
      method: 'GET',
      path: '/accounts/{accountId}/limits',
      tag: 'Accounts',
      summary: 'The limits of an account, and what is used of them',
      access: 'operator',
      params: accountParams,
      status: 200,
      response: accountLimits,
      errorStatuses: [404],
      handle: async ({ caller, params }) => serializeLimits(await accounts.limits(caller, params.accountId)),
    }),
    operation({
      id: 'updateLimitsOfAccount',
      method: 'PATCH',
      path: '/accounts/{accountId}/limits',
      tag: 'Accounts',
      summary: 'Set or remove limits of an account',
      access: 'operator',
      params: accountParams,
      body: named('UpdateAccountLimits', limitValues),
      status: 200,
      response: accountLimits,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) =>
        serializeLimits(await accounts.changeLimits(caller, params.accountId, body)),
    }),
    operation({
      id: 'disableAccount',
      method: 'POST',
      path: '/accounts/{accountId}/disable',
      tag: 'Accounts',
      summary: 'Disable an account',
      description: 'Its keys stop working at once, its pods are stopped, and its endpoints have no workers.',
      access: 'operator',
      params: accountParams,
      status: 200,
      response: account,
      errorStatuses: [400, 404, 409],
      handle: async ({ caller, params }) =>
        serializeAccount(await accounts.disable(caller, params.accountId)),
    }),
    operation({
      id: 'enableAccount',
      method: 'POST',
      path: '/accounts/{accountId}/enable',
      tag: 'Accounts',
      summary: 'Enable a disabled account',
      description:
        'Its keys work again and its endpoints get workers. Its pods stay stopped until they are started.',
      access: 'operator',
      params: accountParams,
      status: 200,
      response: account,
      errorStatuses: [404, 409],
      handle: async ({ caller, params }) => serializeAccount(await accounts.enable(caller, params.accountId)),
    }),
    operation({
      id: 'deleteAccount',
      method: 'DELETE',
      path: '/accounts/{accountId}',
      tag: 'Accounts',
      summary: 'Delete an account with all that it owns',
      description:
        'Its keys stop working at once. Pods, endpoints, jobs, volumes, images, secrets and logs are ' +
        'deleted; what is not done when this is answered is finished soon after, also after a restart. ' +
        'Usage and the audit log stay.',
      access: 'operator',
      params: accountParams,
      status: 204,
      errorStatuses: [400, 404],
      handle: async ({ caller, params }) => {
        await accounts.remove(caller, params.accountId);
      },
    }),
    operation({
      id: 'createAccount',
      method: 'POST',
      path: '/accounts',
      tag: 'Accounts',
      summary: 'Create an account with its first key',
      access: 'operator',
      description: 'The key is in this answer and in no other.',
      body: named(
        'CreateAccount',
        object({ name: text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Unique' }) }),
      ),
      status: 201,
      response: named(
        'NewAccount',
        object({ id: text(), name: text(), key: text({ description: 'Shown once' }) }),
      ),
      errorStatuses: [400, 409, 413, 422],
      handle: async ({ caller, body }) => {
        const made = await accounts.create(caller, body.name);
        return { id: made.account.id, name: made.account.name, key: made.key };
      },
    }),
  ];
}

function serializeAccount({ id, name, status, createdAt }: Account): Static<typeof account> {
  return { id, name, status, createdAt: isoTime(createdAt) };
}

function serializeLimits({ account: { id }, usage }: AccountLimits): Static<typeof accountLimits> {
  return {
    accountId: id,
    limits: usage.map((entry) => ({ ...entry, warning: isNearLimit(entry) })),
  };
}
