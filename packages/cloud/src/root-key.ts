import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureRoot } from './resources/accounts/root.ts';
import type { Context } from './resources/context.ts';
import { readIfThere, writePrivateFile } from './support/private-file.ts';

export interface RootKey {
  /** Where it is kept. Nothing where another server made it: this one knows its hash alone. */
  file: string | undefined;
  /** Set until a start has come far enough to show it. */
  unseen: string | undefined;
  seen(): void;
}

/**
 * The root key is kept where the command line finds it, readable by its owner alone. A start may
 * fail after it made the key, on a port that is taken for one; a mark beside the key lasts until
 * one has shown it.
 */
export async function settleRootKey(
  context: Context,
  data: string,
  given: string | undefined,
): Promise<RootKey> {
  const file = join(data, 'root.key');
  const mark = join(data, 'root.key.unseen');
  const kept = readIfThere(file)?.trim() || undefined;
  const { created } = await ensureRoot(context, given, kept);
  if (created !== undefined) writePrivateFile(mark, '');
  const current = given ?? created ?? kept;
  if (current !== undefined && current !== kept) writePrivateFile(file, `${current}\n`);
  return {
    file: current === undefined ? undefined : file,
    unseen: existsSync(mark) ? current : undefined,
    seen: () => rmSync(mark, { force: true }),
  };
}
