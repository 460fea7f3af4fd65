import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureRootAccount } from '../resources/accounts/root-account.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';

export interface RootKey {
  /** Where it is kept. Nothing where another server made it: this one knows its hash alone. */
  file: string | undefined;
  /** Set until a start has come far enough to show it. */
  unshownKey: string | undefined;
  markShown(): void;
}

/**
 * The root key is kept where the command line finds it, readable by its owner alone. A start may
 * fail after it made the key, on a port that is taken for one; a mark beside the key lasts until
 * one has shown it.
 */
export async function initializeRootKey(
  context: ResourceContext,
  data: string,
  given: string | undefined,
): Promise<RootKey> {
  const file = join(data, 'root.key');
  const mark = join(data, 'root.key.unseen');
  const kept = readIfExists(file)?.trim() || undefined;
  const { created } = await ensureRootAccount(context, given, kept);
  if (created !== undefined) writePrivateFile(mark, '');
  const current = given ?? created ?? kept;
  if (current !== undefined && current !== kept) writePrivateFile(file, `${current}\n`);
  return {
    file: current === undefined ? undefined : file,
    unshownKey: existsSync(mark) ? current : undefined,
    markShown: () => rmSync(mark, { force: true }),
  };
}
