import { stat } from 'node:fs/promises';
import type { BackupTarget } from './backup-target.ts';
import { backupTime } from './backup-target.ts';
import { s3Request } from '../object-storage/s3-request.ts';
import type { S3Location } from '../object-storage/s3-request.ts';

/** A larger file is sent in parts of this size: one request may carry 5 GB. */
const PART_BYTES = 64 * 1024 ** 2;

/** A bucket, below a prefix. An object is there when it was sent whole, not before. */
export function s3Target(location: S3Location, prefix: string): BackupTarget {
  const keyOf = (name: string): string => (prefix === '' ? name : `${prefix}/${name}`);
  return {
    list: async () => {
      const names: string[] = [];
      let token: string | undefined;
      do {
        const { body } = await s3Request(location, 'GET', '', [
          ['list-type', '2'],
          ['prefix', keyOf('berth-')],
          ...(token === undefined ? [] : [['continuation-token', token] as [string, string]]),
        ]);
        for (const [, key = ''] of body.matchAll(/<Key>([^<]*)<\/Key>/g))
          names.push(key.split('/').at(-1) ?? '');
        token = /<NextContinuationToken>([^<]*)</.exec(body)?.[1];
      } while (token !== undefined);
      return names.filter((name) => backupTime(name) !== undefined).sort();
    },
    add: async (name, file) => {
      const { size } = await stat(file);
      if (size <= PART_BYTES)
        await s3Request(location, 'PUT', keyOf(name), [], { file, start: 0, length: size });
      else await addInParts(location, keyOf(name), file, size);
    },
    remove: async (name) => {
      await s3Request(location, 'DELETE', keyOf(name));
    },
  };
}

async function addInParts(location: S3Location, key: string, file: string, size: number): Promise<void> {
  const started = await s3Request(location, 'POST', key, [['uploads', '']]);
  const id = /<UploadId>([^<]+)<\/UploadId>/.exec(started.body)?.[1] ?? '';
  try {
    const parts: string[] = [];
    for (let start = 0; start < size; start += PART_BYTES) {
      const { headers } = await s3Request(
        location,
        'PUT',
        key,
        [
          ['partNumber', String(parts.length + 1)],
          ['uploadId', id],
        ],
        { file, start, length: Math.min(PART_BYTES, size - start) },
      );
      parts.push(`<Part><PartNumber>${parts.length + 1}</PartNumber><ETag>${headers.etag}</ETag></Part>`);
    }
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
    const { body: answer } = await s3Request(location, 'POST', key, [['uploadId', id]], body);
    // This operation may fail after its status was sent.
    if (answer.includes('<Error>')) throw new Error(`the upload of ${key} could not be completed: ${answer}`);
  } catch (error) {
    await s3Request(location, 'DELETE', key, [['uploadId', id]]).catch(() => undefined);
    throw error;
  }
}
