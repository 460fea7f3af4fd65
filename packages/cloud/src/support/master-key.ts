import { hkdfSync, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readIfExists, writePrivateFile } from './private-file.ts';

const KEY_BYTES = 32;

/**
 * The key that encrypts values at rest: the configured one, else the one in the data directory, else a new
 * one that is stored there. A new one is derived from the root key if one is configured, so that servers that
 * share a database and the root key can read each other's values.
 */
export function loadMasterKey(data: string, given: Buffer | undefined, rootKey: string | undefined): Buffer {
  if (given !== undefined) return given;
  const file = join(data, 'master.key');
  const kept = readIfExists(file);
  if (kept !== undefined) return parseMasterKey(kept.trim());
  const fresh =
    rootKey === undefined
      ? randomBytes(KEY_BYTES)
      : Buffer.from(hkdfSync('sha256', rootKey, '', 'berth master key', KEY_BYTES));
  writePrivateFile(file, `${fresh.toString('hex')}\n`);
  return fresh;
}

/** 32 bytes, as 64 hexadecimal digits or in base64. */
export function parseMasterKey(text: string): Buffer {
  const key = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES)
    throw new Error('a master key is 32 bytes, as 64 hexadecimal digits or in base64');
  return key;
}
