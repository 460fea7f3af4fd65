import { UniqueViolation } from '../../store/database.ts';
import type { ApiKey } from '../../domain/records.ts';
import { hashApiKey } from '../../support/crypto.ts';
import { ROOT_ACCOUNT_ID, SYSTEM_CALLER } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { FULL_SCOPES, createApiKey } from '../keys/new-api-key.ts';

/**
 * Sees to it that the root account and its key exist. With a key given, that one becomes the
 * root key; without one, the key that exists stays, and where there is none yet it is the one
 * that this server kept, or a new one. Servers that start together on a new
 * database agree on whoever was first.
 */
export async function ensureRootAccount(
  context: ResourceContext,
  given: string | undefined,
  kept?: string,
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
    given ?? kept,
  );
  const account = { id: ROOT_ACCOUNT_ID, name: 'root', sshKeys: [], createdAt: clock.now() };
  try {
    await store.accounts.insert(
      account,
      { ...record, root: true },
      auditEntry(context, SYSTEM_CALLER, 'create', 'account', ROOT_ACCOUNT_ID),
    );
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    return ensureRootAccount(context, given, kept);
  }
  return { created: key };
}

async function replaceRootKey(context: ResourceContext, existing: ApiKey, key: string): Promise<void> {
  await context.store.keys.change(ROOT_ACCOUNT_ID, existing.id, (current) => ({
    record: { ...current, hash: hashApiKey(key) },
    audit: auditEntry(context, SYSTEM_CALLER, 'replace', 'API key', existing.id),
  }));
}
