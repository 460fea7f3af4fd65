import type { ResourceServices } from '../../resources/resources.ts';
import { type Template, TEMPLATE_CATEGORIES } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { boolean, integer, list, named, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId } from './common.v2.schema.ts';
import {
  mergeCommand,
  containerFields,
  persistentMount,
  serializeContainer,
  containerResponseFields,
} from './container.v2.schema.ts';
import { paginate, pageQuery, pagination } from './pagination.v2.ts';
import type { TemplateFields } from '../../domain/templates/template-defaults.ts';
import { MAX_NAME_LENGTH, MAX_IMAGE_REFERENCE_LENGTH, CUDA_VERSION_PATTERN } from '../../domain/limits.ts';

const category = stringEnum(TEMPLATE_CATEGORIES, {
  description: 'How the template is grouped; it chooses no hardware',
});
const cudaVersions = list(text({ pattern: CUDA_VERSION_PATTERN }), {
  description: 'CUDA versions that a machine may have; empty is any',
});

/** What comes out may be smaller than what may be sent: other interfaces allow smaller sizes. */
const shownMounts = object({}, { persistent: object({ size: integer(), path: text() }) });

export const template = named(
  'Template',
  object(
    {
      id: text(),
      name: text(),
      ...containerResponseFields,
      mounts: shownMounts,
      serverless: boolean(),
      public: boolean(),
      category,
      startSsh: boolean(),
      startJupyter: boolean(),
      allowedCudaVersions: list(text()),
    },
    {},
    { description: 'A reusable container configuration' },
  ),
);

const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Unique in the account' });
const image = text({
  minLength: 1,
  maxLength: MAX_IMAGE_REFERENCE_LENGTH,
  description: 'Container image with tag',
});

const settings = {
  ...containerFields,
  mounts: object(
    {},
    { persistent: persistentMount },
    { description: 'A disk that outlives restarts. Omitted or empty: as it is' },
  ),
  public: boolean({ description: 'Readable by every account' }),
  serverless: boolean({ description: 'For endpoints rather than pods' }),
  category,
  startSsh: boolean({ description: "Put the account's SSH keys into the container" }),
  startJupyter: boolean({ description: 'Set a Jupyter password' }),
  allowedCudaVersions: cudaVersions,
};

const createTemplate = named('CreateTemplate', object({ name, image }, settings));
const updateTemplate = named('UpdateTemplate', object({}, { name, image, ...settings }));

export function templateOperations({ templates }: ResourceServices): Operation[] {
  const tag = 'Templates';
  return [
    operation({
      id: 'listTemplates',
      method: 'GET',
      path: '/templates',
      tag,
      summary: 'List your templates, newest first',
      access: 'read',
      query: object({}, pageQuery),
      status: 200,
      response: named('TemplateList', object({ templates: list(template), pagination })),
      errorStatuses: [422],
      handle: async ({ caller, query }) => {
        const page = await paginate('templates', query, (slice) => templates.list(caller, slice));
        return { templates: page.items.map(serializeTemplate), pagination: page.pagination };
      },
    }),
    operation({
      id: 'createTemplate',
      method: 'POST',
      path: '/templates',
      tag,
      summary: 'Create a template',
      access: 'write',
      body: createTemplate,
      status: 201,
      response: template,
      errorStatuses: [400, 413, 422],
      handle: async ({ caller, body }) =>
        serializeTemplate(
          await templates.create(caller, {
            ...fieldsOf(body),
            name: body.name,
            image: body.image,
            args: mergeCommand(body, ''),
          }),
        ),
    }),
    operation({
      id: 'getTemplate',
      method: 'GET',
      path: '/templates/{id}',
      tag,
      summary: 'Get a template of yours or a public one',
      access: 'read',
      params: byId,
      status: 200,
      response: template,
      errorStatuses: [404],
      handle: async ({ caller, params }) => serializeTemplate(await templates.get(caller, params.id)),
    }),
    operation({
      id: 'updateTemplate',
      method: 'PATCH',
      path: '/templates/{id}',
      tag,
      summary: 'Update a template',
      access: 'write',
      params: byId,
      body: updateTemplate,
      status: 200,
      response: template,
      errorStatuses: [400, 404, 413, 422],
      handle: async ({ caller, params, body }) =>
        serializeTemplate(
          await templates.update(caller, params.id, fieldsOf(body), (args) => mergeCommand(body, args)),
        ),
    }),
    operation({
      id: 'deleteTemplate',
      method: 'DELETE',
      path: '/templates/{id}',
      tag,
      summary: 'Delete a template that nothing uses',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => templates.remove(caller, params.id),
    }),
  ];
}

export function serializeTemplate(found: Template): Static<typeof template> {
  return {
    id: found.id,
    name: found.name,
    ...serializeContainer(found),
    mounts: found.volumeSize === 0 ? {} : { persistent: { size: found.volumeSize, path: found.volumePath } },
    serverless: found.serverless,
    public: found.public,
    category: found.category,
    startSsh: found.startSsh,
    startJupyter: found.startJupyter,
    allowedCudaVersions: found.allowedCudaVersions,
  };
}

/** Only the fields of the body, without the command, which may build on the present one. */
function fieldsOf({
  args: _args,
  cmd: _cmd,
  entrypoint: _entrypoint,
  disk,
  registry,
  mounts,
  ...same
}: Static<typeof updateTemplate>): Partial<TemplateFields> {
  const persistent = mounts?.persistent;
  return {
    ...same,
    ...(disk !== undefined && { containerDisk: disk }),
    ...(registry !== undefined && { registryId: registry }),
    ...(persistent !== undefined && { volumeSize: persistent.size, volumePath: persistent.path }),
  };
}
