/** Existing tools recognize the access id of an S3 key by this prefix. */
export const S3_ACCESS_ID_PREFIX = 'user_';

/**
 * Berth's addition to S3: a text by which a client finds its own multipart uploads in the list of all
 * uploads.
 */
export const UPLOAD_SOURCE_HEADER = 'x-berth-source';
