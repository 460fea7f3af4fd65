import type { ImageFile } from '../../domain/images/image-files.ts';
import type { Image } from '../../resources/images/images.ts';
import type { AllServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { schemaError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { integer, list, named, nullable, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import {
  MAX_IMAGE_REFERENCE_LENGTH,
  MAX_IMAGE_UPLOAD_BYTES,
  MAX_IMAGE_PATH_LENGTH,
  MAX_IMAGE_FILES,
  MAX_LOCAL_IMAGE_NAME_LENGTH,
  LOCAL_IMAGE_NAME_PATTERN,
  MAX_KEEP_DAYS,
} from '../../domain/limits.ts';

const ANY_EXECUTE_BIT = 0o111;

const name = text({
  minLength: 1,
  maxLength: MAX_LOCAL_IMAGE_NAME_LENGTH,
  pattern: LOCAL_IMAGE_NAME_PATTERN,
  description: 'Lower-case letters and digits, with single dashes or underscores between them',
});

const file = object(
  {
    path: text({
      minLength: 1,
      maxLength: MAX_IMAGE_PATH_LENGTH,
      description: 'Below the folder, with slashes',
    }),
    data: text({ description: 'The content in base64' }),
  },
  {
    mode: integer({
      minimum: 0,
      maximum: 0o777,
      default: 0o644,
      description: 'As in Unix; only whether it may be run is kept',
    }),
  },
);

const fields = {
  name: text(),
  image: text({
    description:
      'Name this as the image of an endpoint to run it: local/<name>:<digest>, and ' +
      'local/<account>.<name>:<digest> for any account but root. Nobody else can run it',
  }),
  digest: text({ description: 'Of all paths and contents' }),
  files: integer(),
  size: integer({ description: 'Bytes of all files' }),
  createdAt: dateTime('When it was first uploaded'),
};
const image = named('Image', object(fields, {}, { description: 'A folder that the process engine can run' }));
const listedImage = named(
  'ListedImage',
  object({ ...fields, endpoints: list(text(), { description: 'Endpoints that run it' }) }),
);

export function imageOperations({ images }: Pick<AllServices, 'images'>): Operation[] {
  const tag = 'Images';
  return [
    operation({
      id: 'listImages',
      method: 'GET',
      path: '/images',
      tag,
      summary: 'List your uploaded folders, newest first',
      access: 'read',
      status: 200,
      response: named('ImageList', object({ images: list(listedImage) })),
      handle: async ({ caller }) => ({
        images: (await images.list(caller)).map((found) => ({
          ...serializeImage(found),
          endpoints: found.endpoints,
        })),
      }),
    }),
    operation({
      id: 'checkImage',
      method: 'GET',
      path: '/images/check',
      tag,
      summary: 'Whether an image can be found',
      access: 'read',
      description:
        'Berth only: "berth deploy" asks this first. The Docker daemon is asked, and through it the ' +
        'registry: with the saved credentials that `registry` names, with a delegation that covers the ' +
        'image, or without credentials.',
      query: object(
        { image: text({ minLength: 1, maxLength: MAX_IMAGE_REFERENCE_LENGTH }) },
        { registry: text({ minLength: 1, description: 'Id of saved registry credentials' }) },
      ),
      status: 200,
      response: named(
        'ImageCheck',
        object({
          image: text(),
          problem: nullable(text({ description: 'Null if it can be found, or if that is not known' })),
        }),
      ),
      errorStatuses: [400, 404, 422],
      handle: async ({ caller, query: { image: reference, registry = null } }) => ({
        image: reference,
        problem: (await images.lookupProblem(caller, reference, registry)) ?? null,
      }),
    }),
    operation({
      id: 'createImage',
      method: 'POST',
      path: '/images',
      tag,
      summary: 'Upload a folder that endpoints can run',
      access: 'write',
      bodyLimit: MAX_IMAGE_UPLOAD_BYTES,
      description:
        'Berth only, for the process engine: "berth deploy" speaks it. The same files under the same ' +
        'name are the same image. What runs is the command in berth.json, or else handler.ts, ' +
        'handler.js, handler.mjs or handler.py.',
      body: named(
        'CreateImage',
        object({ name, files: list(file, { minItems: 1, maxItems: MAX_IMAGE_FILES }) }),
      ),
      status: 201,
      response: image,
      errorStatuses: [400, 413, 422, 507],
      handle: async ({ caller, body }) =>
        serializeImage(await images.store(caller, body.name, body.files.map(readFile))),
    }),
    operation({
      id: 'pruneImages',
      method: 'POST',
      path: '/images/prune',
      tag,
      summary: 'Delete all uploaded folders that nothing uses',
      access: 'write',
      description:
        'Berth only. What an endpoint, one of its last ten releases, a template or a pod names is kept. With ' +
        'an operator key also the container images that Berth pulled on the machine of this server, and the ' +
        'Python environments that it made there, of all accounts; those used in the last hour stay.',
      query: object(
        {},
        {
          unusedDays: integer({
            minimum: 0,
            maximum: MAX_KEEP_DAYS,
            default: 0,
            description: 'Only what was not uploaded or used for so many days',
          }),
        },
      ),
      status: 200,
      response: named(
        'PrunedImages',
        object({
          removed: list(text()),
          kept: list(text(), { description: 'Uploaded folders that are left' }),
        }),
      ),
      errorStatuses: [400, 422],
      handle: ({ caller, query: { unusedDays = 0 } }) => images.prune(caller, unusedDays),
    }),
    operation({
      id: 'deleteImage',
      method: 'DELETE',
      path: '/images/{name}',
      tag,
      summary: 'Delete the uploaded folders of a name that nothing uses',
      access: 'write',
      description:
        'What an endpoint or a template names is kept. A roll back to a release whose image is gone cannot start.',
      params: object({ name: text({ minLength: 1 }) }),
      status: 200,
      response: named(
        'DeletedImages',
        object({ removed: list(text()), kept: list(text(), { description: 'Still in use' }) }),
      ),
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => images.remove(caller, params.name),
    }),
  ];
}

function readFile({ path, mode = 0o644, data }: Static<typeof file>): ImageFile {
  const content = Buffer.from(data, 'base64');
  // The decoder passes over what is not base64; then less comes out than the length promises.
  const padding = data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0;
  if (data.length % 4 !== 0 || content.length !== (data.length / 4) * 3 - padding) {
    throw schemaError([`$.files: the data of ${JSON.stringify(path.slice(0, 80))} is not base64`]);
  }
  return { path, executable: (mode & ANY_EXECUTE_BIT) !== 0, content };
}

function serializeImage({
  name: shownName,
  image: reference,
  digest,
  files,
  size,
  createdAt,
}: Image): Static<typeof image> {
  return { name: shownName, image: reference, digest, files, size, createdAt: isoTime(createdAt) };
}
