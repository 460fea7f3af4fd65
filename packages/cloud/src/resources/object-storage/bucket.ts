import type { Readable } from 'node:stream';
import { openS3Object, s3Request } from './s3-request.ts';
import type { FilePiece, S3Location } from './s3-request.ts';

/** Files of the installation, by name, in a bucket. */
export interface Bucket {
  add(name: string, content: Uint8Array | FilePiece): Promise<void>;
  open(name: string): Promise<Readable>;
  remove(name: string): Promise<void>;
}

export function s3Bucket(location: S3Location, prefix: string): Bucket {
  const keyOf = (name: string): string => (prefix === '' ? name : `${prefix}/${name}`);
  return {
    add: async (name, content) => void (await s3Request(location, 'PUT', keyOf(name), [], content)),
    open: (name) => openS3Object(location, keyOf(name)),
    remove: async (name) => void (await s3Request(location, 'DELETE', keyOf(name))),
  };
}
