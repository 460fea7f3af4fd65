import { Readable } from 'node:stream';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import type { AllServices } from '../../resources/resources.ts';
import { MAX_OBJECT_KEY_BYTES } from '../../resources/volumes/object-key.ts';
import type { VolumeFile } from '../../resources/volumes/volume-files.ts';
import { isoTimeOrNull } from '../../support/clock.ts';
import { BerthError, schemaError } from '../../support/errors.ts';
import type { FileDownload, Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, integer, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { requireLength } from '../require-length.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { pageQuery, pagination } from './pagination.v2.ts';

const path = text({
  minLength: 1,
  maxLength: MAX_OBJECT_KEY_BYTES,
  description: 'From the top of the volume, names separated by slashes',
});
const file = named(
  'VolumeFile',
  object({
    name: text({ description: 'Without the folders that it is in' }),
    kind: stringEnum(['file', 'folder']),
    size: integer({ description: 'In bytes; 0 for a folder' }),
    modifiedAt: nullable(dateTime('When it was last changed; null for a folder')),
  }),
);
const CURSOR_PREFIX = 'after ';

/** The files of network volumes, folder by folder. S3 shows the same files. */
export function volumeFileOperations({ volumeFiles }: Pick<AllServices, 'volumeFiles'>): Operation[] {
  const tag = 'Network volumes';
  return [
    operation({
      id: 'listVolumeFiles',
      method: 'GET',
      path: '/network-volumes/{id}/files',
      tag,
      summary: 'List what is in a folder of a network volume',
      access: 'read',
      params: byId,
      query: object({}, { path: { ...path, minLength: 0, default: '' }, ...pageQuery }),
      status: 200,
      response: named('VolumeFileList', object({ files: list(file), pagination })),
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query }) => {
        const { files, next } = await volumeFiles.list(caller, params.id, query.path ?? '', {
          limit: query.limit ?? MAX_PAGE_SIZE,
          after: query.cursor === undefined ? '' : readCursor(query.cursor),
        });
        return {
          files: files.map(serializeFile),
          pagination: {
            nextCursor: next === undefined ? null : writeCursor(next),
            hasNextPage: next !== undefined,
          },
        };
      },
    }),
    operation({
      id: 'readVolumeFile',
      method: 'GET',
      path: '/network-volumes/{id}/files/content',
      tag,
      summary: 'Download a file of a network volume',
      access: 'read',
      download: 'application/octet-stream',
      params: byId,
      query: object({ path }),
      status: 200,
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query }) => {
        const { size, read, close, key } = await volumeFiles.open(caller, params.id, query.path);
        if (size === 0) await close();
        const content =
          size === 0 ? Readable.from([]) : Readable.from(requireLength(read(0, size - 1), size));
        const download: FileDownload = { name: key.slice(key.lastIndexOf('/') + 1), size, content };
        return download;
      },
    }),
    operation({
      id: 'writeVolumeFile',
      method: 'PUT',
      path: '/network-volumes/{id}/files/content',
      tag,
      summary: 'Upload a file to a network volume',
      description:
        'The body is the content of the file, of any size, with a Content-Length. The file is there ' +
        'when it is whole and on disk. Folders on the way to it are made.',
      access: 'write',
      upload: 'application/octet-stream',
      params: byId,
      query: object(
        { path },
        { replace: boolean({ default: false, description: 'Replace an existing file' }) },
      ),
      status: 201,
      response: file,
      errorStatuses: [404, 409, 413, 415, 422, 507],
      handle: async ({ caller, params, query, upload, uploadLength }) => {
        if (uploadLength === undefined)
          throw new BerthError('malformed', 'send the length of the file as Content-Length');
        return serializeFile(
          await volumeFiles.write(caller, params.id, query.path, {
            content: upload,
            length: uploadLength,
            replace: query.replace ?? false,
          }),
        );
      },
    }),
    operation({
      id: 'createVolumeFolder',
      method: 'POST',
      path: '/network-volumes/{id}/folders',
      tag,
      summary: 'Make a folder in a network volume',
      access: 'write',
      params: byId,
      body: named('CreateVolumeFolder', object({ path })),
      status: 201,
      response: file,
      errorStatuses: [404, 409, 413, 422, 507],
      handle: async ({ caller, params, body }) =>
        serializeFile(await volumeFiles.createFolder(caller, params.id, body.path)),
    }),
    operation({
      id: 'deleteVolumeFile',
      method: 'DELETE',
      path: '/network-volumes/{id}/files',
      tag,
      summary: 'Delete a file or a folder of a network volume',
      description: 'What a symbolic link leads to stays: only the link is deleted.',
      access: 'write',
      params: byId,
      query: object(
        { path },
        { recursive: boolean({ default: false, description: 'Delete a folder with all that is in it' }) },
      ),
      status: 204,
      errorStatuses: [404, 409, 422],
      handle: ({ caller, params, query }) =>
        volumeFiles.remove(caller, params.id, query.path, query.recursive ?? false),
    }),
  ];
}

function serializeFile({ name, kind, size, modifiedAt }: VolumeFile): Static<typeof file> {
  return { name, kind, size, modifiedAt: isoTimeOrNull(modifiedAt) };
}

function writeCursor(after: string): string {
  return Buffer.from(CURSOR_PREFIX + after).toString('base64url');
}

function readCursor(cursor: string): string {
  const written = Buffer.from(cursor, 'base64url').toString();
  if (!written.startsWith(CURSOR_PREFIX) || written.includes('\0'))
    throw schemaError(['$.cursor: is not a cursor of this list; start again without one']);
  return written.slice(CURSOR_PREFIX.length);
}
