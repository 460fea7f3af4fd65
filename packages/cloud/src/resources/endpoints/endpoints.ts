import { UniqueViolation } from '../../store/database.ts';
import type { Endpoint, PageRequest, Template } from '../../domain/records.ts';
import type { AuditedEndpointChange, EndpointReferences, EndpointReferenceIds } from '../../store/store.ts';
import { BerthError, notFound, ruleError, schemaError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { checkRegistryExists, referencedRegistryIds } from '../registries/registry-references.ts';
import { rejectDuplicateName } from '../templates/templates.ts';
import type { TemplateUpdate, Templates } from '../templates/templates.ts';
import type { EndpointCache } from './endpoint-cache.ts';
import { applyEndpointInput } from './endpoint-input.ts';
import { withVersion } from './endpoint-release.ts';
import { newEndpointId } from '../../domain/endpoints/reserved-endpoint-ids.ts';
import {
  containerFromTemplate,
  mergeTemplateChange,
  impliedTemplate,
} from '../../domain/templates/template-inheritance.ts';
import { readCatalogSnapshot } from '../catalog/read-catalog-snapshot.ts';
import type { TemplateFields } from '../../domain/templates/template-defaults.ts';
import {
  ENDPOINT_DEFAULTS,
  type EndpointInput,
  type TemplateUse,
} from '../../domain/endpoints/endpoint-defaults.ts';

const RESOURCE = 'endpoint';
/** Values of the environment are nobody's business but the container's. */
const AUDIT_HIDDEN_FIELDS: (keyof Endpoint)[] = ['env'];

export interface EndpointsDeps {
  catalog: Catalog;
  templates: Templates;
  cache: EndpointCache;
  /** For endpoints that do not say whether their workers are accelerated. */
  acceleratesByDefault?: boolean;
  /** What else goes with an endpoint. */
  onRemoved(endpointId: string): Promise<void>;
}

/** Where an endpoint's container comes from. */
interface ContainerSource {
  use: TemplateUse['as'];
  template: Template;
}

export class Endpoints {
  readonly #context: ResourceContext;
  readonly #deps: EndpointsDeps;

  constructor(context: ResourceContext, deps: EndpointsDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  /** Whether new workers of this endpoint are accelerated. */
  isAccelerated({ accelerate }: Pick<Endpoint, 'accelerate'>): boolean {
    return accelerate ?? this.#deps.acceleratesByDefault ?? false;
  }

  async create(caller: Caller, order: EndpointInput): Promise<Endpoint> {
    const { store, clock, ids } = this.#context;
    const offer = await readCatalogSnapshot(this.#deps.catalog);
    const id = newEndpointId(ids);
    const now = clock.now();
    const source = await this.#source(caller, id, order.template);
    const created = await retriedWithFreeName(id, source, (from) =>
      store.endpoints.insert(caller.accountId, referenceIds(caller, order, from, []), (footing) => {
        const blank: Endpoint = {
          ...ENDPOINT_DEFAULTS,
          id,
          accountId: caller.accountId,
          createdAt: now,
          updatedAt: now,
        };
        const template = from && currentTemplate(caller, from, footing);
        const base =
          template === undefined
            ? blank
            : { ...withTemplateContainer(blank, from, template), ...templateDefaults(template) };
        const record = applyEndpointInput(withoutInheritedCuda(order), base, undefined, offer, footing);
        return withOwnTemplate(
          { record, audit: auditEntry(this.#context, caller, 'create', RESOURCE, id) },
          from,
        );
      }),
    );
    this.#context.events.publish('endpoint.changed', { endpointId: id, source: 'request' });
    return created;
  }

  async update(caller: Caller, id: string, order: EndpointInput): Promise<Endpoint> {
    const present = await this.get(caller, id);
    const { templateId, templateBound } = present;
    const own =
      order.template?.as === 'own' && templateBound && templateId !== null
        ? { templateId, fields: ownFields(order.template.fields) }
        : undefined;
    const changed = await (own === undefined
      ? this.#change(caller, present, order)
      : this.#changeWithTemplate(caller, present, order, own));
    this.#deps.cache.invalidate(id);
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.#context.events.publish('endpoint.changed', { endpointId: id, source: 'request' });
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Endpoint> {
    const found = await this.#context.store.endpoints.find(caller.accountId, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  list(caller: Caller, page?: PageRequest): Promise<Endpoint[]> {
    return this.#context.store.endpoints.list(caller.accountId, page);
  }

  /** The template that it follows, or else one that says what it holds: also where the endpoint has gone meanwhile, and its template with it. */
  async templateOf(caller: Caller, endpoint: Endpoint): Promise<Template> {
    if (!endpoint.templateLinked || endpoint.templateId === null) return impliedTemplate(endpoint);
    return this.#deps.templates.get(caller, endpoint.templateId).catch((error: unknown) => {
      if (error instanceof BerthError && error.code === 'not-found') return impliedTemplate(endpoint);
      throw error;
    });
  }

  /** Templates that belong to one endpoint alone, and to which. */
  async boundTemplates(caller: Caller): Promise<Map<string, string>> {
    const bound = (await this.list(caller)).filter(({ templateBound }) => templateBound);
    return new Map(bound.map(({ id, templateId }) => [templateId ?? '', id]));
  }

  /** With it go its jobs, its workers, and a template that was made for it alone. */
  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.endpoints.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    this.#deps.cache.invalidate(id);
    if (!removed) throw notFound(RESOURCE, id);
    this.#context.events.publish('endpoint.removed', { endpointId: id });
    await this.#deps.onRemoved(id);
  }

  async #change(caller: Caller, present: Endpoint, order: EndpointInput): Promise<Endpoint | undefined> {
    const offer = await readCatalogSnapshot(this.#deps.catalog);
    // The template that an endpoint already has, said again, changes nothing.
    const isSame = order.template?.as === 'link' && order.template.id === present.templateId;
    const source = isSame ? undefined : await this.#source(caller, present.id, order.template);
    return retriedWithFreeName(present.id, source, (from) =>
      this.#context.store.endpoints.change(
        caller.accountId,
        present.id,
        referenceIds(caller, order, from, present.networkVolumeIds),
        (current, footing) => {
          const template = from && currentTemplate(caller, from, footing);
          const base = template === undefined ? current : withTemplateContainer(current, from, template);
          return withOwnTemplate(
            this.#changed(caller, current, applyEndpointInput(order, base, current, offer, footing)),
            from,
          );
        },
      ),
    );
  }

  /** A template of the endpoint's own is changed where it is, together with the endpoint: all of it is one release, or nothing happens. */
  async #changeWithTemplate(
    caller: Caller,
    { id, networkVolumeIds }: Endpoint,
    order: EndpointInput,
    { templateId, fields }: { templateId: string; fields: Partial<TemplateFields> },
  ): Promise<Endpoint | undefined> {
    const { templates, catalog } = this.#deps;
    const offer = await readCatalogSnapshot(catalog);
    const ids: EndpointReferenceIds = {
      templateId,
      changesTemplate: true,
      registryIds: referencedRegistryIds(order, fields),
      volumeIds: order.networkVolumeIds ?? networkVolumeIds,
    };
    let change: TemplateUpdate | undefined;
    const changing = this.#context.store.endpoints.change(caller.accountId, id, ids, (current, footing) => {
      const { template: before } = footing;
      if (before === undefined || current.templateId !== before.id)
        throw new BerthError('state', 'this endpoint has just got another template; try again');
      change = templates.prepareUpdate(caller, before, fields, footing);
      const { record: after, audit, updateLinked } = change;
      const base = {
        ...current,
        ...mergeTemplateChange(
          current,
          containerFromTemplate(before, caller.accountId),
          containerFromTemplate(after, caller.accountId),
        ),
      };
      return {
        ...this.#changed(caller, current, applyEndpointInput(order, base, current, offer, footing)),
        changedTemplate: {
          record: after,
          audit,
          updateLinked: (linked) => (linked.id === id ? undefined : updateLinked(linked)),
        },
      };
    });
    const changed = await rejectDuplicateName(fields.name, changing);
    templates.notifyLinkedEndpoints(change);
    return changed;
  }

  #changed(caller: Caller, before: Endpoint, after: Endpoint): AuditedEndpointChange {
    const record = withVersion(before, { ...after, updatedAt: this.#context.clock.now() });
    return {
      record,
      audit: auditEntry(
        this.#context,
        caller,
        'update',
        RESOURCE,
        before.id,
        diffRecords(before, record, AUDIT_HIDDEN_FIELDS),
      ),
    };
  }

  async #source(
    caller: Caller,
    endpoint: string,
    use: TemplateUse | undefined,
  ): Promise<ContainerSource | undefined> {
    if (use === undefined) return undefined;
    if (use.as === 'own') {
      const { name = `template of ${endpoint}`, image = '', ...rest } = ownFields(use.fields);
      return {
        use: 'own',
        template: this.#deps.templates.draft(caller, { ...rest, name, image, serverless: true }),
      };
    }
    const template = await this.#deps.templates.get(caller, use.id).catch((error: unknown) => {
      if (use.as === 'link' && error instanceof BerthError && error.code === 'not-found')
        throw unknownTemplateError(use.id);
      throw error;
    });
    if (use.as === 'copy' && !template.serverless) {
      throw schemaError([
        `$.templateId: template ${JSON.stringify(template.name)} is for pods; an endpoint needs a serverless one`,
      ]);
    }
    return { use: use.as, template };
  }
}

/** A template of one's own is followed; one that belongs to someone else, or to Berth, is only copied: nobody else shall change what runs here. */
function isLinked(caller: Pick<Caller, 'accountId'>, { use, template }: ContainerSource): boolean {
  return use === 'own' || (use === 'link' && template.accountId === caller.accountId);
}

function referenceIds(
  caller: Caller,
  order: EndpointInput,
  source: ContainerSource | undefined,
  volumeIds: readonly string[],
): EndpointReferenceIds {
  const held = source !== undefined && source.use === 'link' && isLinked(caller, source);
  return {
    ...(held && { templateId: source.template.id }),
    registryIds: referencedRegistryIds(order, source?.template),
    volumeIds: order.networkVolumeIds ?? volumeIds,
  };
}

/** A template that is followed is taken as it is at the moment of writing; a copy loses a registry that has gone by then, as the template did. */
function currentTemplate(
  caller: Caller,
  source: ContainerSource,
  { template: held, registryIds }: EndpointReferences,
): Template {
  const { use, template } = source;
  if (use === 'link' && isLinked(caller, source)) {
    if (held === undefined) throw unknownTemplateError(template.id);
    return held;
  }
  if (use === 'own') checkRegistryExists(template.registryId, registryIds);
  return template.registryId === null || registryIds.includes(template.registryId)
    ? template
    : { ...template, registryId: null };
}

/** The endpoint with a template's container in it. A copy leaves no trace of where it came from. */
function withTemplateContainer(
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

/** A template of one endpoint alone is for serverless and not public, whatever is said of that. */
function ownFields({
  serverless,
  public: isPublic,
  ...fields
}: Partial<TemplateFields>): Partial<TemplateFields> {
  return fields;
}

/** What a template says of a new endpoint where the order does not. */
function templateDefaults({
  name,
  category,
  allowedCudaVersions,
}: Template): Pick<Endpoint, 'name' | 'compute' | 'allowedCudaVersions'> {
  return { name, compute: category === 'CPU' ? 'CPU' : 'GPU', allowedCudaVersions };
}

/** A template's CUDA versions are a default; a floor that is asked for takes their place. */
function withoutInheritedCuda(order: EndpointInput): EndpointInput {
  return {
    ...order,
    settings: (base) => {
      const said = order.settings(base);
      return typeof said.minCudaVersion === 'string' && said.allowedCudaVersions === undefined
        ? { ...said, allowedCudaVersions: [] }
        : said;
    },
  };
}

function withOwnTemplate(
  changed: AuditedEndpointChange,
  source: ContainerSource | undefined,
): AuditedEndpointChange {
  return source?.use === 'own' ? { ...changed, template: source.template } : changed;
}

/** The template of one endpoint alone yields where its name is taken. */
async function retriedWithFreeName<T>(
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

function unknownTemplateError(id: string): BerthError {
  return ruleError(
    `template ${JSON.stringify(id.slice(0, 64))} does not exist, or is not yours to use; create it first or name another`,
  );
}
