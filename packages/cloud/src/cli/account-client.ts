import { closestMatch } from '../support/config/did-you-mean.ts';
import type { ApiClient } from './api-client.ts';
import { CliError } from './cli.errors.ts';

export interface AccountView {
  id: string;
  name: string;
  status: string;
  createdAt: string;
}

export const accountOption = {
  kind: 'text',
  value: 'ACCOUNT',
  description: 'The account, by id or name. Default: your own. For operators.',
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
  const byId = rows.filter(({ id }) => id === account);
  const found = byId.length > 0 ? byId : rows.filter(({ name }) => name === account);
  if (found.length > 1)
    throw new CliError(
      `${found.length} accounts are called ${JSON.stringify(account)}; name one by its id: ` +
        `${found.map(({ id }) => id).join(', ')}`,
    );
  const [only] = found;
  if (only === undefined) {
    const close = closestMatch(
      account,
      rows.map(({ name }) => name),
    );
    throw new CliError(
      'there is no account ' +
        `${JSON.stringify(account)}${close === undefined ? '; "berth account list" shows all' : `; did you mean ${JSON.stringify(close)}?`}`,
    );
  }
  return `/v2/accounts/${encodeURIComponent(only.id)}`;
}

export const KEY_SHOWN_ONCE = 'This key is shown once. Keep it now: Berth stores only its hash.';
