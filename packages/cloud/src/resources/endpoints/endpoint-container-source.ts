import { UniqueViolation } from '../../store/database.ts';
import type { Endpoint, Template } from '../../domain/records.ts';
import type { AuditedEndpointChange, EndpointReferences, EndpointReferenceIds } from '../../store/store.ts';
import { type BerthError, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { checkRegistryExists, referencedRegistryIds } from '../registries/registry-references.ts';
import { containerFromTemplate } from '../../domain/templates/template-inheritance.ts';
import type { TemplateFields } from '../../domain/templates/template-defaults.ts';
import type { EndpointInput, TemplateUse } from '../../domain/endpoints/endpoint-defaults.ts';

/** The template that an endpoint's container settings come from, and how it is used. */
export interface ContainerSource {
  use: TemplateUse['as'];
  template: Template;
}

/**
 * An endpoint is linked only to a template of its own account. Other templates are copied, so that nobody
 * else can change what runs here.
 */
function isLinked(caller: Pick<Caller, 'accountId'>, { use, template }: ContainerSource): boolean {
  return use === 'own' || (use === 'link' && template.accountId === caller.accountId);
}

export function referenceIds(
  caller: Caller,
  input: EndpointInput,
  source: ContainerSource | undefined,
  volumeIds: readonly string[],
): EndpointReferenceIds {
  const linked = source !== undefined && source.use === 'link' && isLinked(caller, source);
  return {
    ...(linked && { templateId: source.template.id }),
    registryIds: referencedRegistryIds(input, source?.template),
    volumeIds: input.networkVolumeIds ?? volumeIds,
  };
}

/**
 * A linked template is read in the transaction that writes. A copy drops a registry that was deleted in the
 * meantime.
 */
export function currentTemplate(
  caller: Caller,
  source: ContainerSource,
  { template: linked, registryIds }: EndpointReferences,
): Template {
  const { use, template } = source;
  if (use === 'link' && isLinked(caller, source)) {
    if (linked === undefined) throw unknownTemplateError(template.id);
    return linked;
  }
  if (use === 'own') checkRegistryExists(template.registryId, registryIds);
  return template.registryId === null || registryIds.includes(template.registryId)
    ? template
    : { ...template, registryId: null };
}

/** Applies a template's container settings to the endpoint. A copy does not record the template's id. */
export function withTemplateContainer(
  endpoint: Endpoint,
  source: ContainerSource | undefined,
  template: Template,
): Endpoint {
  const withContainer = { ...endpoint, ...containerFromTemplate(template, endpoint.accountId) };
  if (source === undefined || source.use === 'copy') return withContainer;
  return {
    ...withContainer,
    templateId: template.id,
    templateLinked: isLinked(endpoint, source),
    templateBound: source.use === 'own',
  };
}

/** A template of a single endpoint is always serverless and private. */
export function ownFields({
  serverless,
  public: isPublic,
  ...fields
}: Partial<TemplateFields>): Partial<TemplateFields> {
  return fields;
}

/** Defaults that a template gives a new endpoint. */
export function templateDefaults({
  name,
  category,
  allowedCudaVersions,
}: Template): Pick<Endpoint, 'name' | 'compute' | 'allowedCudaVersions'> {
  return { name, compute: category === 'CPU' ? 'CPU' : 'GPU', allowedCudaVersions };
}

/** A template's CUDA versions are defaults; a minimum version in the request replaces them. */
export function withoutInheritedCuda(input: EndpointInput): EndpointInput {
  return {
    ...input,
    settings: (base) => {
      const settings = input.settings(base);
      return typeof settings.minCudaVersion === 'string' && settings.allowedCudaVersions === undefined
        ? { ...settings, allowedCudaVersions: [] }
        : settings;
    },
  };
}

export function withOwnTemplate(
  changed: AuditedEndpointChange,
  source: ContainerSource | undefined,
): AuditedEndpointChange {
  return source?.use === 'own' ? { ...changed, template: source.template } : changed;
}

/** If the name of an endpoint's own template is taken, retries with a unique name. */
export async function retriedWithFreeName<T>(
  id: string,
  source: ContainerSource | undefined,
  write: (source: ContainerSource | undefined) => Promise<T>,
): Promise<T> {
  try {
    return await write(source);
  } catch (error) {
    if (!(error instanceof UniqueViolation) || source?.use !== 'own') throw error;
    return write({
      ...source,
      template: {
        ...source.template,
        name: `${source.template.name.slice(0, 160)} ${id} ${source.template.id}`,
      },
    });
  }
}

export function unknownTemplateError(id: string): BerthError {
  return ruleError(
    `template ${JSON.stringify(id.slice(0, 64))} does not exist, or is not yours to use; create it ` +
      'first or name another',
  );
}
