import { UniqueViolation } from '../../store/database.ts';
import { ACCOUNT_DEFAULTS, type ApiKey } from '../../domain/records.ts';
import { hashApiKey } from '../../support/crypto.ts';
import { ROOT_ACCOUNT_ID, SYSTEM_CALLER } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { FULL_SCOPES, createApiKey } from '../keys/new-api-key.ts';

/**
 * Ensures that the root account and its key exist. A given key replaces the root key. Without one, the
 * existing key stays; if there is none, the key stored by this server is used, or a new one is created. If
 * several servers start on a new database at the same time, the first insert wins.
 */
export async function ensureRootAccount(
  context: ResourceContext,
  given: string | undefined,
  stored?: string,
): Promise<{ created: string | undefined }> {
  const { store, clock } = context;
  const existing = await store.keys.findRoot();
  if (existing !== undefined) {
    if (given !== undefined && hashApiKey(given) !== existing.hash)
      await replaceRootKey(context, existing, given);
    return { created: undefined };
  }
  const { record, key } = createApiKey(
    context,
    {
      accountId: ROOT_ACCOUNT_ID,
      name: 'root key',
      access: 'all',
      scopes: FULL_SCOPES,
      endpoints: null,
      expiresAt: null,
    },
    given ?? stored,
  );
  const account = { ...ACCOUNT_DEFAULTS, id: ROOT_ACCOUNT_ID, name: 'root', createdAt: clock.now() };
  try {
    await store.accounts.insert(
      account,
      { ...record, root: true },
      auditEntry(context, SYSTEM_CALLER, 'create', 'account', ROOT_ACCOUNT_ID),
    );
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    return ensureRootAccount(context, given, stored);
  }
  return { created: key };
}

async function replaceRootKey(context: ResourceContext, existing: ApiKey, key: string): Promise<void> {
  await context.store.keys.change(ROOT_ACCOUNT_ID, existing.id, (current) => ({
    record: { ...current, hash: hashApiKey(key) },
    audit: auditEntry(context, SYSTEM_CALLER, 'replace', 'API key', existing.id),
  }));
}
