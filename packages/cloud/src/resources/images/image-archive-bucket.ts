import type { Readable } from 'node:stream';
import type { ImageArchiveKey } from '../../store/image-archive-store.ts';
import { openS3Object, s3Request } from '../object-storage/s3-request.ts';
import type { S3Location } from '../object-storage/s3-request.ts';

/** Keeps the packed files of deployed folders outside the database. */
export interface ImageArchiveBucket {
  add(key: ImageArchiveKey, archive: Uint8Array): Promise<void>;
  open(key: ImageArchiveKey): Promise<Readable>;
  remove(key: ImageArchiveKey): Promise<void>;
}

export function imageArchiveBucket(location: S3Location, prefix: string): ImageArchiveBucket {
  const objectOf = ({ name, digest }: ImageArchiveKey): string =>
    `${prefix === '' ? '' : `${prefix}/`}${name}/${digest}.tar.gz`;
  return {
    add: async (key, archive) => void (await s3Request(location, 'PUT', objectOf(key), [], archive)),
    open: (key) => openS3Object(location, objectOf(key)),
    remove: async (key) => void (await s3Request(location, 'DELETE', objectOf(key))),
  };
}
