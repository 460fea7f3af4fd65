import type { ApiClient } from './api-client.ts';
import { requireByIdOrName } from './find-by-id-or-name.ts';

export interface AccountView {
  id: string;
  name: string;
  status: string;
  createdAt: string;
}

export const accountOption = {
  kind: 'text',
  value: 'ACCOUNT',
  description: 'The account, by id or name. Default: your own. Operators only.',
} as const;

/** The path of an account's keys. The account is given by id or by a unique name. */
export async function keysPath(client: ApiClient, account: string | undefined): Promise<string> {
  return `${await accountPath(client, account)}/api-keys`;
}

export async function s3KeysPath(client: ApiClient, account: string | undefined): Promise<string> {
  return `${await accountPath(client, account)}/s3-keys`;
}

/** The account is given by id or by a unique name; without one it is the caller's own. */
export async function accountPath(client: ApiClient, account: string | undefined): Promise<string> {
  if (account === undefined) return '/v2/account';
  const { rows } = await client.list<AccountView>('/v2/accounts', 'accounts');
  const words = { noun: 'account', listCommand: 'berth account list' };
  const { id } = requireByIdOrName(rows, account, words);
  return `/v2/accounts/${encodeURIComponent(id)}`;
}

export const KEY_SHOWN_ONCE = 'This key is shown once. Keep it now: Berth stores only its hash.';
