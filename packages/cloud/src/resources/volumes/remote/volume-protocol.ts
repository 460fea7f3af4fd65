import type { ErrorCode } from '../../../support/errors.ts';
import type { StoredObject } from '../object-metadata.ts';

/**
 * How a Berth server speaks with a volume server, which sees a volume that it does not see itself. Calls are
 * `POST /call/<name>` with JSON; content of files is the body of `POST /arrive`, `PUT /part` and `GET /content`.
 */
/** The size of the volume, in bytes: it may have grown since the volume server started. */
export const CAPACITY_HEADER = 'x-berth-capacity';

/** A file that was received and has no name yet. */
export interface ArrivedFile {
  id: string;
  md5: string;
}

/** Which state of an object a write was decided on; null: there was none. */
export type ObjectIdentity = Pick<StoredObject, 'etag' | 'size' | 'modifiedAt'> | null;

/** A write was refused, since the object is not what it was decided on. */
export interface ChangedObject {
  changed: true;
  present: StoredObject | null;
}

export type WriteAnswer = { stored: StoredObject } | ChangedObject;

export interface ErrorAnswer {
  /** Missing where the error is one of the file system. */
  code?: ErrorCode;
  /** The code of the system, such as ENOSPC. */
  errno?: string;
  message: string;
}

export function identityOf(object: StoredObject | null | undefined): ObjectIdentity {
  if (object === undefined || object === null) return null;
  return { etag: object.etag, size: object.size, modifiedAt: object.modifiedAt };
}

export function isSameObject(one: ObjectIdentity, other: ObjectIdentity): boolean {
  if (one === null || other === null) return one === other;
  return one.etag === other.etag && one.size === other.size && one.modifiedAt === other.modifiedAt;
}
