import { formatArgs, parseArgs } from '../../domain/templates/container-command.ts';
import { splitPorts } from '../../domain/templates/container-ports.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { Caller } from '../../domain/caller.ts';
import { officialTemplates } from '../../resources/templates/official-templates.ts';
import { type Template, TEMPLATE_CATEGORIES } from '../../domain/records.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import {
  boolean,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { type TemplateFields, V1_TEMPLATE_DEFAULTS } from '../../domain/templates/template-defaults.ts';
import {
  MAX_NAME_LENGTH,
  MAX_PUBLIC_TEMPLATES,
  MAX_IMAGE_REFERENCE_LENGTH,
  DISK_GB,
} from '../../domain/limits.ts';
import { withoutUnset } from './unset-fields.ts';

const category = stringEnum(TEMPLATE_CATEGORIES, { description: 'How the template is grouped' });
const disk = nullable(integer({ ...DISK_GB, description: 'Size in GB' }));

export const template = named(
  'Template',
  object(
    {
      id: text(),
      name: text(),
      imageName: text(),
      category,
      containerDiskInGb: integer(),
      dockerEntrypoint: list(text()),
      dockerStartCmd: list(text()),
      earned: number(),
      env: map(text()),
      isPublic: boolean(),
      isRunpod: boolean({ description: 'Comes with this installation' }),
      isServerless: boolean(),
      ports: list(text()),
      readme: text(),
      runtimeInMin: integer(),
      volumeInGb: integer(),
      volumeMountPath: text(),
    },
    { containerRegistryAuthId: text() },
    { description: 'A reusable container configuration' },
  ),
);

const changeable = {
  containerDiskInGb: disk,
  containerRegistryAuthId: nullable(text({ description: 'Saved registry credentials; empty removes them' })),
  dockerEntrypoint: list(text()),
  dockerStartCmd: list(text()),
  env: map(text()),
  isPublic: boolean(),
  ports: list(text({ description: 'For example 8888/http' })),
  readme: text(),
  volumeInGb: disk,
  volumeMountPath: text(),
};
const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Unique in the account' });
const imageName = text({ minLength: 1, maxLength: MAX_IMAGE_REFERENCE_LENGTH });

const createInput = named(
  'TemplateCreateInput',
  object({ name, imageName }, { ...changeable, category, isServerless: boolean() }),
);
const updateInput = named('TemplateUpdateInput', object({}, { name, imageName, ...changeable }));

const include = {
  includeEndpointBoundTemplates: boolean({
    default: false,
    description: 'Also templates that belong to one endpoint',
  }),
  includePublicTemplates: boolean({ default: false, description: "Also other accounts' public templates" }),
  includeRunpodTemplates: boolean({
    default: false,
    description: 'Also templates that come with this installation',
  }),
};
const byTemplateId = object({ templateId: text({ minLength: 1 }) });

export function templateOperations({ templates, endpoints }: ResourceServices): Operation[] {
  const tag = 'Templates';
  const update = {
    tag,
    access: 'write' as const,
    params: byTemplateId,
    body: updateInput,
    status: 200 as const,
    response: template,
    errorStatuses: [400, 404],
    handle: async ({
      caller,
      params,
      body,
    }: {
      caller: Caller;
      params: { templateId: string };
      body: Static<typeof updateInput>;
    }) =>
      serializeTemplate(
        await templates.update(caller, params.templateId, fieldsOf(body), (args) => commandOf(body, args)),
      ),
  };
  return [
    operation({
      id: 'createTemplate',
      method: 'POST',
      path: '/templates',
      tag,
      summary: 'Create a template',
      access: 'write',
      body: createInput,
      status: 200,
      response: template,
      errorStatuses: [400],
      handle: async ({ caller, body }) => {
        const { isServerless = false, category: group, ...rest } = body;
        const fields = {
          ...(isServerless ? {} : V1_TEMPLATE_DEFAULTS),
          ...fieldsOf(rest),
          ...(group !== undefined && { category: group }),
        };
        return serializeTemplate(
          await templates.create(caller, {
            ...fields,
            name: body.name,
            image: body.imageName,
            args: commandOf(rest, ''),
            serverless: isServerless,
          }),
        );
      },
    }),
    operation({
      id: 'listTemplates',
      method: 'GET',
      path: '/templates',
      tag,
      summary: 'List templates',
      access: 'read',
      query: object({}, include),
      status: 200,
      response: list(template),
      errorStatuses: [400],
      handle: async ({ caller, query }) => {
        const bound =
          query.includeEndpointBoundTemplates === true ? undefined : await endpoints.boundTemplates(caller);
        const own = (await templates.list(caller)).filter(({ id }) => bound?.has(id) !== true);
        const others =
          query.includePublicTemplates === true
            ? (await templates.listPublic(MAX_PUBLIC_TEMPLATES)).filter(
                ({ accountId }) => accountId !== caller.accountId,
              )
            : [];
        const official = query.includeRunpodTemplates === true ? officialTemplates : [];
        return [...own, ...others, ...official].map(serializeTemplate);
      },
    }),
    operation({
      id: 'getTemplate',
      method: 'GET',
      path: '/templates/{templateId}',
      tag,
      summary: 'Get a template',
      access: 'read',
      params: byTemplateId,
      query: object({}, include),
      status: 200,
      response: template,
      errorStatuses: [400, 404],
      handle: async ({ caller, params }) => serializeTemplate(await templates.get(caller, params.templateId)),
    }),
    operation({
      ...update,
      id: 'updateTemplate',
      method: 'PATCH',
      path: '/templates/{templateId}',
      summary: 'Update a template',
    }),
    operation({
      ...update,
      id: 'updateTemplateByPost',
      method: 'POST',
      path: '/templates/{templateId}/update',
      summary: 'Update a template (the same as PATCH)',
    }),
    operation({
      id: 'deleteTemplate',
      method: 'DELETE',
      path: '/templates/{templateId}',
      tag,
      summary: 'Delete a template that nothing uses',
      access: 'write',
      params: byTemplateId,
      status: 204,
      errorStatuses: [400, 404],
      handle: ({ caller, params }) => templates.remove(caller, params.templateId),
    }),
  ];
}

/** The command that a body asks for; what it does not say stays. */
function commandOf(
  { dockerEntrypoint, dockerStartCmd }: Static<typeof updateInput>,
  current: string,
): string {
  if (dockerEntrypoint === undefined && dockerStartCmd === undefined) return current;
  const { entrypoint, cmd } = parseArgs(current);
  return formatArgs({ entrypoint: dockerEntrypoint ?? entrypoint, cmd: dockerStartCmd ?? cmd });
}

/** Only the fields of the body; null and the empty registry id mean "none". */
function fieldsOf(body: Static<typeof updateInput>): Partial<TemplateFields> {
  const {
    name: given,
    imageName: image,
    containerDiskInGb,
    containerRegistryAuthId,
    env,
    isPublic,
    ports,
    readme,
    volumeInGb,
    volumeMountPath,
  } = body;
  return {
    ...(given !== undefined && { name: given }),
    ...(image !== undefined && { image }),
    ...(containerDiskInGb !== undefined && { containerDisk: containerDiskInGb ?? 0 }),
    ...(containerRegistryAuthId !== undefined && {
      registryId: containerRegistryAuthId === '' ? null : containerRegistryAuthId,
    }),
    ...(env !== undefined && { env }),
    ...(isPublic !== undefined && { public: isPublic }),
    ...(ports !== undefined && { ports: splitPorts(ports) }),
    ...(readme !== undefined && { readme }),
    ...(volumeInGb !== undefined && { volumeSize: volumeInGb ?? 0 }),
    ...(volumeMountPath !== undefined && { volumePath: volumeMountPath }),
  };
}

export function serializeTemplate(found: Template): Static<typeof template> {
  const { entrypoint, cmd } = parseArgs(found.args);
  return {
    id: found.id,
    name: found.name,
    imageName: found.image,
    category: found.category,
    containerDiskInGb: found.containerDisk,
    ...withoutUnset({ containerRegistryAuthId: found.registryId }),
    dockerEntrypoint: entrypoint,
    dockerStartCmd: cmd,
    earned: 0,
    env: found.env,
    isPublic: found.public,
    isRunpod: officialTemplates.includes(found),
    isServerless: found.serverless,
    ports: found.ports,
    readme: found.readme,
    runtimeInMin: 0,
    volumeInGb: found.volumeSize,
    volumeMountPath: found.volumePath,
  };
}
