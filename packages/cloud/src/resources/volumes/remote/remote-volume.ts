import type { Readable } from 'node:stream';
import { BerthError } from '../../../support/errors.ts';
import type { MultipartUpload, UploadPart } from '../multipart-uploads.ts';
import type { StoredObject } from '../object-metadata.ts';
import type { ObjectStore, UploadStore, VolumeBackend } from '../volume-backend.ts';
import type { OpenObject, WriteCondition } from '../volume-objects.ts';
import type { VolumeUsage } from '../volume-usage.ts';
import { type ArrivedFile, identityOf, type ObjectIdentity, type WriteAnswer } from './volume-protocol.ts';
import type { VolumeServerClient } from './volume-server-client.ts';

/** How often a write is decided again because the object changed meanwhile. */
const MAX_DECISIONS = 10;

/** The files of a volume that only a volume server sees. */
export function remoteVolume(client: VolumeServerClient): VolumeBackend {
  const objects = remoteObjects(client);
  return {
    objects,
    uploads: remoteUploads(client, objects),
    removeFolder: (names) => client.call<boolean>('remove-folder', names),
    usage: () => client.call<VolumeUsage>('usage', null),
  };
}

function remoteObjects(client: VolumeServerClient): ObjectStore {
  const head = async (key: string): Promise<StoredObject | undefined> =>
    (await client.call<StoredObject | null>('head', key)) ?? undefined;
  return {
    list: (query) => client.call('list', query),
    head,
    open: async (key): Promise<OpenObject | undefined> => {
      const object = await head(key);
      if (object === undefined) return undefined;
      let opened: Readable | undefined;
      return {
        ...object,
        read: (from, to) => {
          const query = new URLSearchParams({
            key,
            from: String(from),
            to: String(to),
            identity: JSON.stringify(identityOf(object)),
          });
          return (opened = client.download(`/content?${query}`));
        },
        close: async () => void opened?.destroy(),
      };
    },
    put: async (key, { bytes, length, headers, checksums }, condition = () => undefined) => {
      if (key.endsWith('/')) return client.call<StoredObject>('put-folder', { key, length });
      const present = await head(key);
      // Refuses before the content is sent.
      condition(present);
      const arrived = await client.upload<ArrivedFile>(
        'POST',
        `/arrive?replaced=${present?.size ?? 0}`,
        bytes,
        length,
      );
      const metadata = { etag: arrived.md5, headers, checksums: checksums?.() ?? {} };
      return decide(present, condition, (expected) =>
        client.call<WriteAnswer>('commit', { key, id: arrived.id, metadata, expected }),
      );
    },
    remove: async (key) => void (await client.call('remove', key)),
  };
}

function remoteUploads(client: VolumeServerClient, objects: ObjectStore): UploadStore {
  return {
    create: (key, headers, source) =>
      client.call<MultipartUpload>('create-upload', {
        key,
        headers,
        ...(source !== undefined && { source }),
      }),
    find: async (id, key) =>
      (await client.call<MultipartUpload | null>('find-upload', { id, key })) ?? undefined,
    list: () => client.call<MultipartUpload[]>('list-uploads', null),
    putPart: ({ id, key }, number, { bytes, length }) =>
      client.upload<UploadPart>(
        'PUT',
        `/part?${new URLSearchParams({ id, key, number: String(number) })}`,
        bytes,
        length,
      ),
    listParts: (id) => client.call<UploadPart[]>('list-parts', id),
    complete: async (upload, chosen, condition) => {
      const present = await objects.head(upload.key);
      return decide(present, condition, (expected) =>
        client.call<WriteAnswer>('complete-upload', { upload, chosen, expected }),
      );
    },
    abort: async (upload) => void (await client.call('abort-upload', upload)),
  };
}

/**
 * Conditions are functions of this server and are checked here. The volume server writes only if the object
 * is still the one that was checked.
 */
async function decide(
  known: StoredObject | undefined,
  condition: WriteCondition,
  write: (expected: ObjectIdentity) => Promise<WriteAnswer>,
): Promise<StoredObject> {
  let present = known;
  for (let decisions = 1; decisions <= MAX_DECISIONS; decisions += 1) {
    condition(present);
    const answer = await write(identityOf(present));
    if ('stored' in answer) return answer.stored;
    present = answer.present ?? undefined;
  }
  throw new BerthError('unavailable', 'the object keeps changing; try again');
}
