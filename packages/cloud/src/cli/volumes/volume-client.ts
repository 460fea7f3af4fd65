import type { ApiClient } from '../api-client.ts';
import { UsageError } from '../cli.errors.ts';
import { requireByIdOrName } from '../find-by-id-or-name.ts';

/** The fields of a network volume that the commands use. */
export interface VolumeView {
  id: string;
  name: string;
  /** Size in GB. */
  size: number;
  dataCenter: string;
  type: string;
  /** Used bytes; null if not measured yet. */
  used: number | null;
}

export const volumeArgumentHelp = 'The network volume, by id or name.';

export function volumePath({ id }: Pick<VolumeView, 'id'>): string {
  return `/v2/network-volumes/${encodeURIComponent(id)}`;
}

export async function listVolumes(client: ApiClient): Promise<{ answer: unknown; rows: VolumeView[] }> {
  return client.list<VolumeView>('/v2/network-volumes', 'networkVolumes');
}

/** Finds a volume by id or by a unique name. */
export async function findVolume(client: ApiClient, word: string): Promise<VolumeView> {
  const { rows } = await listVolumes(client);
  return requireByIdOrName(rows, word, { noun: 'network volume', listCommand: 'berth volume ls' });
}

/** A remote path: `VOLUME:/path`. */
export interface RemotePath {
  name: string;
  /** Without a leading slash. */
  path: string;
}

/** Undefined for a local path: one without a colon, or with a slash before the colon. */
export function parseRemotePath(word: string): RemotePath | undefined {
  const colon = word.indexOf(':');
  if (colon < 1 || word.slice(0, colon).includes('/')) return undefined;
  return { name: word.slice(0, colon), path: word.slice(colon + 1).replace(/^\/+/, '') };
}

export function parseSizeInGb(word: string): number {
  const [, digits] = /^(\d{1,7})(?:gb?)?$/i.exec(word) ?? [];
  if (digits === undefined)
    throw new UsageError(`the size is ${JSON.stringify(word)}; allowed: a whole number of GB`);
  return Number(digits);
}
