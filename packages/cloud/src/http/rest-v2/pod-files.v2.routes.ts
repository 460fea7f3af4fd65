import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, named, object, stringEnum, text } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';

const MAX_PATH_LENGTH = 4_096;
const pathQuery = object({
  path: text({
    minLength: 1,
    maxLength: MAX_PATH_LENGTH,
    description: 'As the pod sees it; one that does not begin with a slash begins at its working folder',
  }),
});

const podFile = named(
  'PodFile',
  object({
    kind: stringEnum(['file', 'folder', 'other']),
    size: integer({ description: 'In bytes; 0 for a folder' }),
    mode: integer({ description: 'As in Unix' }),
    modifiedAt: dateTime('When it was last changed'),
  }),
);

/**
 * Copies into pods and out of them. Both need a key that may write: they reach as far as a command in the pod
 * does.
 */
export function podFileOperations({ pods }: Pick<ResourceServices, 'pods'>): Operation[] {
  const tag = 'Pods';
  return [
    operation({
      id: 'getPodFile',
      method: 'GET',
      path: '/pods/{id}/files/info',
      tag,
      summary: 'See what is at a path in a running pod',
      access: 'write',
      params: byId,
      query: pathQuery,
      status: 200,
      response: podFile,
      errorStatuses: [400, 404, 409, 422],
      handle: async ({ caller, params, query }) => {
        const { kind, size, mode, modifiedAt } = await pods.files.stat(caller, params.id, query.path);
        return { kind, size, mode, modifiedAt: isoTime(modifiedAt) };
      },
    }),
    operation({
      id: 'readPodFiles',
      method: 'GET',
      path: '/pods/{id}/files',
      tag,
      summary: 'Copy a file or a folder out of a running pod',
      access: 'write',
      download: 'application/x-tar',
      description:
        'A tar archive, whose entries are all below one that is named as the last part of the path. An ' +
        'archive that breaks off before its end was not copied whole. "berth pod cp" speaks this.',
      params: byId,
      query: pathQuery,
      status: 200,
      errorStatuses: [400, 404, 409, 422],
      handle: ({ caller, params, query }) => pods.files.read(caller, params.id, query.path) as never,
    }),
    operation({
      id: 'writePodFiles',
      method: 'PUT',
      path: '/pods/{id}/files',
      tag,
      summary: 'Copy files into a running pod',
      access: 'write',
      upload: 'application/x-tar',
      description:
        'The body is a tar archive of any size; it is unpacked into the folder at the path, which must ' +
        'be there. Folders on the way to an entry are made.',
      params: byId,
      query: pathQuery,
      status: 204,
      errorStatuses: [400, 404, 409, 415, 422],
      handle: ({ caller, params, query, upload }) => pods.files.write(caller, params.id, query.path, upload),
    }),
  ];
}
