import type { ApiKey, Scopes } from '../../store/records.ts';
import { hashKey } from '../../support/crypto.ts';
import type { Context } from '../context.ts';

export const FULL_SCOPES: Scopes = { rest: 'write', graphql: 'write', serverless: 'write' };
export const READ_SCOPES: Scopes = { rest: 'read', graphql: 'read', serverless: 'read' };

export type KeyFields = Pick<ApiKey, 'accountId' | 'name' | 'access' | 'scopes' | 'endpoints' | 'expiresAt'>;

/** A record to keep and the key to show: the one does not lead back to the other. */
export function newKey(
  { clock, ids }: Pick<Context, 'clock' | 'ids'>,
  fields: KeyFields,
  key: string = ids.apiKey(),
): { record: ApiKey; key: string } {
  const record: ApiKey = {
    ...fields,
    id: ids.resource(),
    hash: hashKey(key),
    enabled: true,
    root: false,
    createdAt: clock.now(),
    lastUsedAt: null,
  };
  return { record, key };
}
