import { isDeepStrictEqual } from 'node:util';
import type { Caller } from '../../domain/caller.ts';
import { officialTemplates } from '../../resources/templates/official-templates.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { parseArgs } from '../../domain/templates/container-command.ts';
import { splitPorts } from '../../domain/templates/container-ports.ts';
import { type Template, type TemplateCategory, TEMPLATE_CATEGORIES } from '../../domain/records.ts';
import { ruleError } from '../../support/errors.ts';
import { requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';
import type { TemplateFields } from '../../domain/templates/template-defaults.ts';
import { MAX_PUBLIC_TEMPLATES } from '../../domain/limits.ts';

const sdl = `
  "A reusable container configuration"
  type PodTemplate {
    id: String
    name: String
    imageName: String
    "The command: shell text, or the JSON text {\\"entrypoint\\": [], \\"cmd\\": []}"
    dockerArgs: String
    "The same as dockerArgs"
    containerArgs: String
    env: [EnvironmentVariable]
    "Such as 8888/http,22/tcp"
    ports: String
    portsConfig: [TemplatePort]
    containerDiskInGb: Int
    containerRegistryAuthId: String
    volumeInGb: Int
    volumeMountPath: String
    readme: String
    category: String
    advancedStart: Boolean
    startScript: String
    startSsh: Boolean
    startJupyter: Boolean
    isPublic: Boolean
    "Comes with this installation"
    isRunpod: Boolean
    isServerless: Boolean
    boundEndpointId: String
    earned: Float
    runtimeInMin: Int
    userId: String
    config: JSON
  }
  type TemplatePort { port: String name: String }
  input TemplatePortInput { port: String name: String }
  input PodTemplateInput { isRunpod: Boolean isPublic: Boolean }
  "With an id, the given fields change; without one, a template is made, which needs name, imageName, containerDiskInGb and volumeInGb"
  input SaveTemplateInput {
    id: String
    name: String
    imageName: String
    dockerArgs: String
    "The same as dockerArgs"
    containerArgs: String
    env: [EnvironmentVariableInput]
    ports: String
    portsConfig: [TemplatePortInput]
    containerDiskInGb: Int
    containerRegistryAuthId: String
    volumeInGb: Int
    volumeMountPath: String
    readme: String
    category: String
    advancedStart: Boolean
    startScript: String
    startSsh: Boolean
    startJupyter: Boolean
    isPublic: Boolean
    isServerless: Boolean
    config: JSON
  }

  extend type Query {
    "One of yours, a public one, or one that comes with this installation"
    podTemplate(id: String): PodTemplate
    "Public ones of every account and of this installation; with isPublic false, yours that are not public"
    podTemplates(input: PodTemplateInput): [PodTemplate]
  }
  extend type Mutation {
    saveTemplate(input: SaveTemplateInput): PodTemplate
    deleteTemplate(templateName: String): Void
  }
  extend type User { podTemplates: [PodTemplate] }
`;

export interface SaveTemplateInput {
  id?: string;
  name?: string;
  imageName?: string;
  dockerArgs?: string;
  containerArgs?: string;
  env?: { key?: string; value?: string }[];
  ports?: string;
  portsConfig?: { port?: string; name?: string }[];
  containerDiskInGb?: number;
  containerRegistryAuthId?: string;
  volumeInGb?: number;
  volumeMountPath?: string;
  readme?: string;
  category?: string;
  advancedStart?: boolean;
  startScript?: string;
  startSsh?: boolean;
  startJupyter?: boolean;
  isPublic?: boolean;
  isServerless?: boolean;
  config?: unknown;
}

export function templateModule({ templates }: ResourceServices): GraphqlModule {
  const save = async ({ input = {} }: { input?: SaveTemplateInput }, caller: Caller) => {
    const fields = templateFields(input);
    if (input.id !== undefined) return serializeTemplate(await templates.update(caller, input.id, fields));
    const { name, imageName } = requireFields(input, 'name', 'imageName', 'containerDiskInGb', 'volumeInGb');
    return serializeTemplate(await templates.create(caller, { ...fields, name, image: imageName }));
  };

  const listed = async (
    { input = {} }: { input?: { isRunpod?: boolean; isPublic?: boolean } },
    caller: Caller,
  ) => {
    const found =
      input.isPublic === false
        ? (await templates.list(caller)).filter((template) => !template.public)
        : [...officialTemplates, ...(await templates.listPublic(MAX_PUBLIC_TEMPLATES))];
    return found
      .map(serializeTemplate)
      .filter(({ isRunpod }) => input.isRunpod === undefined || input.isRunpod === isRunpod);
  };

  return {
    sdl,
    authenticatedResolvers: {
      Query: {
        podTemplate: async (args: { id?: string }, caller) =>
          serializeTemplate(await templates.get(caller, requireFields(args, 'id').id)),
        podTemplates: listed,
      },
      Mutation: {
        saveTemplate: save,
        deleteTemplate: async (args: { templateName?: string }, caller) => {
          await templates.removeByName(caller, requireFields(args, 'templateName').templateName);
          return null;
        },
      },
      User: {
        podTemplates: async (_args: unknown, caller) => (await templates.list(caller)).map(serializeTemplate),
      },
    },
  };
}

/** Only the fields that were given. */
export function templateFields(input: SaveTemplateInput): Partial<TemplateFields> {
  const {
    name,
    imageName,
    env,
    ports,
    portsConfig,
    containerDiskInGb,
    containerRegistryAuthId,
    volumeInGb,
    volumeMountPath,
    category,
    isPublic,
    isServerless,
  } = input;
  const { readme, advancedStart, startScript, startSsh, startJupyter, config } = input;
  const args = argsOf(input);
  return {
    ...(name !== undefined && { name }),
    ...(imageName !== undefined && { image: imageName }),
    ...(args !== undefined && { args }),
    ...(env !== undefined && { env: environmentFromList(env) }),
    ...(ports !== undefined && { ports: splitPorts(ports) }),
    ...(portsConfig !== undefined && { portLabels: portLabelsOf(portsConfig) }),
    ...(containerDiskInGb !== undefined && { containerDisk: containerDiskInGb }),
    ...(containerRegistryAuthId !== undefined && { registryId: containerRegistryAuthId }),
    ...(volumeInGb !== undefined && { volumeSize: volumeInGb }),
    ...(volumeMountPath !== undefined && { volumePath: volumeMountPath }),
    ...(readme !== undefined && { readme }),
    ...(category !== undefined && { category: categoryOf(category) }),
    ...(advancedStart !== undefined && { advancedStart }),
    ...(startScript !== undefined && { startScript }),
    ...(startSsh !== undefined && { startSsh }),
    ...(startJupyter !== undefined && { startJupyter }),
    ...(isPublic !== undefined && { public: isPublic }),
    ...(isServerless !== undefined && { serverless: isServerless }),
    ...(config !== undefined && { config }),
  };
}

/** The command has two names here; said under both, it must agree. */
function argsOf({ dockerArgs, containerArgs }: SaveTemplateInput): string | undefined {
  if (
    dockerArgs !== undefined &&
    containerArgs !== undefined &&
    !isDeepStrictEqual(parseArgs(dockerArgs), parseArgs(containerArgs))
  ) {
    throw ruleError(
      'dockerArgs and containerArgs are two names of one thing and say different things; send one of them',
    );
  }
  return dockerArgs ?? containerArgs;
}

export function environmentFromList(
  variables: readonly { key?: string; value?: string }[],
): Record<string, string> {
  const nameless = variables.findIndex(({ key }) => key === undefined);
  if (nameless !== -1) throw ruleError(`env[${nameless}].key is required: missing or empty`);
  return Object.fromEntries(variables.map(({ key = '', value = '' }) => [key, value]));
}

function portLabelsOf(labels: readonly { port?: string; name?: string }[]): Template['portLabels'] {
  return labels.map((label) => {
    const { port, name } = requireFields(label, 'port', 'name');
    return { port, name };
  });
}

function categoryOf(word: string): TemplateCategory {
  const category = TEMPLATE_CATEGORIES.find((known) => known === word.toUpperCase());
  if (category === undefined) throw ruleError(`category must be one of ${TEMPLATE_CATEGORIES.join(', ')}`);
  return category;
}

export function serializeTemplate(found: Template) {
  return {
    id: found.id,
    name: found.name,
    imageName: found.image,
    dockerArgs: found.args,
    containerArgs: found.args,
    env: Object.entries(found.env).map(([key, value]) => ({ key, value })),
    ports: found.ports.join(','),
    portsConfig: found.portLabels,
    containerDiskInGb: found.containerDisk,
    containerRegistryAuthId: found.registryId,
    volumeInGb: found.volumeSize,
    volumeMountPath: found.volumePath,
    readme: found.readme,
    category: found.category,
    advancedStart: found.advancedStart,
    startScript: found.startScript,
    startSsh: found.startSsh,
    startJupyter: found.startJupyter,
    isPublic: found.public,
    isRunpod: officialTemplates.includes(found),
    isServerless: found.serverless,
    earned: 0,
    runtimeInMin: 0,
    userId: found.accountId === '' ? null : found.accountId,
    config: found.config,
  };
}
