/** Our own addition to S3: a word of the client's by which it knows an upload in parts as its own in the list of all. */
export const UPLOAD_SOURCE_HEADER = 'x-berth-source';
