import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureRootAccount } from '../resources/accounts/root-account.ts';
import type { ResourceContext } from '../resources/resource-context.ts';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';

export interface RootKey {
  /**
   * The file that holds the key. Undefined if another server created the key: this one knows only its hash.
   */
  file: string | undefined;
  /** A key that Berth made and has not shown yet. Undefined for a key that the operator gave. */
  unshownKey: string | undefined;
  markShown(): void;
}

/**
 * Stores the root key where the command line finds it, readable by its owner alone. A start may
 * fail after it created the key, for example because the port is in use, or have no terminal to show
 * it on; a marker file beside the key stays until a start has shown it.
 */
export async function initializeRootKey(
  context: ResourceContext,
  data: string,
  given: string | undefined,
): Promise<RootKey> {
  const file = join(data, 'root.key');
  const marker = join(data, 'root.key.unseen');
  const stored = readIfExists(file)?.trim() || undefined;
  const { created } = await ensureRootAccount(context, given, stored);
  if (given !== undefined) rmSync(marker, { force: true });
  else if (created !== undefined) writePrivateFile(marker, '');
  const current = given ?? created ?? stored;
  if (current !== undefined && current !== stored) writePrivateFile(file, `${current}\n`);
  return {
    file: current === undefined ? undefined : file,
    unshownKey: existsSync(marker) ? current : undefined,
    markShown: () => rmSync(marker, { force: true }),
  };
}
