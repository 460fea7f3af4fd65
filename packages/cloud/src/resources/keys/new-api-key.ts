import type { ApiKey, Scopes } from '../../domain/records.ts';
import { hashApiKey } from '../../support/crypto.ts';
import type { ResourceContext } from '../resource-context.ts';

export const FULL_SCOPES: Scopes = { rest: 'write', graphql: 'write', serverless: 'write' };
export const READ_SCOPES: Scopes = { rest: 'read', graphql: 'read', serverless: 'read' };

export type ApiKeyFields = Pick<
  ApiKey,
  'accountId' | 'name' | 'access' | 'scopes' | 'endpoints' | 'expiresAt'
>;

/** The record to store and the key to show once. The key cannot be computed from the record. */
export function createApiKey(
  { clock, ids }: Pick<ResourceContext, 'clock' | 'ids'>,
  fields: ApiKeyFields,
  key: string = ids.apiKey(),
): { record: ApiKey; key: string } {
  const record: ApiKey = {
    ...fields,
    id: ids.resource(),
    hash: hashApiKey(key),
    enabled: true,
    root: false,
    createdAt: clock.now(),
    lastUsedAt: null,
  };
  return { record, key };
}
