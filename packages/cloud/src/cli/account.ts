import { nearest } from '../support/config/nearest.ts';
import type { Client } from './client.ts';
import { Failure } from './failure.ts';

export interface Account {
  id: string;
  name: string;
  createdAt: string;
}

export const accountOption = {
  kind: 'text',
  value: 'ACCOUNT',
  description: 'The account, by id or name; your own where this is left out. For operators.',
} as const;

/** The address of an account's keys. A name must belong to one account; an id always does. */
export async function keysPath(client: Client, account: string | undefined): Promise<string> {
  return `${await accountPath(client, account)}/api-keys`;
}

export async function s3KeysPath(client: Client, account: string | undefined): Promise<string> {
  return `${await accountPath(client, account)}/s3-keys`;
}

async function accountPath(client: Client, account: string | undefined): Promise<string> {
  if (account === undefined) return '/v2/account';
  const { rows } = await client.list<Account>('/v2/accounts', 'accounts');
  const byId = rows.filter(({ id }) => id === account);
  const found = byId.length > 0 ? byId : rows.filter(({ name }) => name === account);
  if (found.length > 1)
    throw new Failure(
      `${found.length} accounts are called ${JSON.stringify(account)}; name one by its id: ${found.map(({ id }) => id).join(', ')}`,
    );
  const [only] = found;
  if (only === undefined) {
    const close = nearest(
      account,
      rows.map(({ name }) => name),
    );
    throw new Failure(
      `there is no account ${JSON.stringify(account)}${close === undefined ? '; "berth account list" shows all' : `; did you mean ${JSON.stringify(close)}?`}`,
    );
  }
  return `/v2/accounts/${encodeURIComponent(only.id)}`;
}

export const SHOWN_ONCE = 'This key is shown once. Keep it now: Berth stores only its hash.';
