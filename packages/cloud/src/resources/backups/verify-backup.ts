import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readTar, TarError } from '../../support/tar/tar-read.ts';
import type { TarEntry } from '../../support/tar/tar-read.ts';
import type { PackedEntry } from '../../support/tar/tar-pack.ts';
import { BACKUP_FORMAT, MANIFEST_FILE } from './backup-manifest.ts';
import type { BackupManifest } from './backup-manifest.ts';

const MAX_MANIFEST_BYTES = 512 * 1024 ** 2;

export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Reads a whole backup and compares every entry with its checksum. Rejects one that is not whole. */
export async function verifyBackup(file: string): Promise<BackupManifest> {
  const found = new Map<string, PackedEntry>();
  let manifest: BackupManifest | undefined;
  try {
    for await (const entry of readTar(createReadStream(file) as AsyncIterable<Uint8Array>)) {
      if (manifest !== undefined) throw new BackupError(`${file} has entries after its end`);
      if (entry.name === MANIFEST_FILE) manifest = await readManifest(entry, file);
      else found.set(entry.name, await summarize(entry));
    }
  } catch (error) {
    if (error instanceof TarError)
      throw new BackupError(`${file} is not a whole backup: ${error.message}`, { cause: error });
    throw error;
  }
  if (manifest === undefined)
    throw new BackupError(`${file} is not a whole backup: it has no ${MANIFEST_FILE}`);
  for (const entry of manifest.entries) {
    const there = found.get(entry.name);
    if (there === undefined) throw new BackupError(`${file} is damaged: ${entry.name} is missing`);
    if (there.type !== entry.type || there.size !== entry.size || there.sha256 !== entry.sha256)
      throw new BackupError(`${file} is damaged: ${entry.name} has another checksum`);
    found.delete(entry.name);
  }
  const [extra] = found.keys();
  if (extra !== undefined) throw new BackupError(`${file} is damaged: ${extra} does not belong to it`);
  return manifest;
}

async function summarize({ name, type, size, target, content }: TarEntry): Promise<PackedEntry> {
  const hash = createHash('sha256');
  if (type === 'folder') return { name, type, size: 0, sha256: '' };
  if (type === 'link') return { name, type, size: 0, sha256: hash.update(target).digest('hex') };
  if (type !== 'file') throw new BackupError(`the backup has an entry of another kind: ${name}`);
  for await (const piece of content) hash.update(piece);
  return { name, type, size, sha256: hash.digest('hex') };
}

async function readManifest({ size, content }: TarEntry, file: string): Promise<BackupManifest> {
  if (size > MAX_MANIFEST_BYTES) throw new BackupError(`${file} has a manifest of ${size} bytes`);
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  let manifest: BackupManifest;
  try {
    manifest = JSON.parse(Buffer.concat(pieces).toString()) as BackupManifest;
  } catch (cause) {
    throw new BackupError(`${file} is damaged: its manifest cannot be read`, { cause });
  }
  if (manifest.format !== BACKUP_FORMAT)
    throw new BackupError(
      `${file} has format ${manifest.format}, and this Berth reads ${BACKUP_FORMAT}; use the version that made it`,
    );
  return manifest;
}
