import { UniqueViolation } from '../../store/database.ts';
import type { Endpoint, Page, Template } from '../../store/records.ts';
import type { ChangedEndpoint, Footing, FootingIds } from '../../store/store.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { auditOf, changesBetween } from '../context.ts';
import type { Context } from '../context.ts';
import { checkRegistry, namedRegistries } from '../registries/reference.ts';
import { refuseTakenName } from '../templates/templates.ts';
import type { TemplateChange, TemplateFields, Templates } from '../templates/templates.ts';
import type { EndpointDirectory } from './directory.ts';
import { offerOf } from './offer.ts';
import { carryOut, DEFAULTS } from './order.ts';
import type { EndpointOrder, TemplateUse } from './order.ts';
import { withVersion } from './release.ts';
import { endpointId } from './reserved-ids.ts';
import { containerOf, followTemplate, impliedTemplate } from './template-link.ts';

const KIND = 'endpoint';
/** Values of the environment are nobody's business but the container's. */
const HIDDEN: (keyof Endpoint)[] = ['env'];

export interface EndpointParts {
  catalog: Catalog;
  templates: Templates;
  directory: EndpointDirectory;
  /** One was made or has become another. */
  onChanged?(endpointId: string): void;
  /** What else goes with an endpoint. */
  onRemoved(endpointId: string): Promise<void>;
}

/** Where an endpoint's container comes from. */
interface Source {
  use: TemplateUse['as'];
  template: Template;
}

export class Endpoints {
  readonly #context: Context;
  readonly #parts: EndpointParts;

  constructor(context: Context, parts: EndpointParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async create(caller: Caller, order: EndpointOrder): Promise<Endpoint> {
    const { store, clock, ids } = this.#context;
    const offer = await offerOf(this.#parts.catalog);
    const id = endpointId(ids);
    const now = clock.now();
    const source = await this.#source(caller, id, order.template);
    const created = await retriedWithFreeName(id, source, (from) =>
      store.endpoints.insert(caller.accountId, footingIds(caller, order, from, []), (footing) => {
        const blank: Endpoint = {
          ...DEFAULTS,
          id,
          accountId: caller.accountId,
          createdAt: now,
          updatedAt: now,
        };
        const template = from && currentTemplate(caller, from, footing);
        const base =
          template === undefined ? blank : { ...built(blank, from, template), ...defaultsFrom(template) };
        const record = carryOut(withoutInheritedCuda(order), base, undefined, offer, footing);
        return withOwnTemplate({ record, audit: auditOf(this.#context, caller, 'create', KIND, id) }, from);
      }),
    );
    this.#parts.onChanged?.(id);
    return created;
  }

  async update(caller: Caller, id: string, order: EndpointOrder): Promise<Endpoint> {
    const present = await this.get(caller, id);
    const { templateId, templateBound } = present;
    const own =
      order.template?.as === 'own' && templateBound && templateId !== null
        ? { templateId, fields: ownFields(order.template.fields) }
        : undefined;
    const changed = await (own === undefined
      ? this.#change(caller, present, order)
      : this.#changeWithTemplate(caller, present, order, own));
    this.#parts.directory.forget(id);
    if (changed === undefined) throw notFound(KIND, id);
    this.#parts.onChanged?.(id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Endpoint> {
    const found = await this.#context.store.endpoints.find(caller.accountId, id);
    if (found === undefined) throw notFound(KIND, id);
    return found;
  }

  list(caller: Caller, page?: Page): Promise<Endpoint[]> {
    return this.#context.store.endpoints.list(caller.accountId, page);
  }

  /** The template that it follows, or else one that says what it holds: also where the endpoint has gone meanwhile, and its template with it. */
  async templateOf(caller: Caller, endpoint: Endpoint): Promise<Template> {
    if (!endpoint.templateLinked || endpoint.templateId === null) return impliedTemplate(endpoint);
    return this.#parts.templates.get(caller, endpoint.templateId).catch((error: unknown) => {
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
      auditOf(this.#context, caller, 'delete', KIND, id),
    );
    this.#parts.directory.forget(id);
    if (!removed) throw notFound(KIND, id);
    await this.#parts.onRemoved(id);
  }

  async #change(caller: Caller, present: Endpoint, order: EndpointOrder): Promise<Endpoint | undefined> {
    const offer = await offerOf(this.#parts.catalog);
    // The template that an endpoint already has, said again, changes nothing.
    const isSame = order.template?.as === 'link' && order.template.id === present.templateId;
    const source = isSame ? undefined : await this.#source(caller, present.id, order.template);
    return retriedWithFreeName(present.id, source, (from) =>
      this.#context.store.endpoints.change(
        caller.accountId,
        present.id,
        footingIds(caller, order, from, present.networkVolumeIds),
        (current, footing) => {
          const template = from && currentTemplate(caller, from, footing);
          const base = template === undefined ? current : built(current, from, template);
          return withOwnTemplate(
            this.#changed(caller, current, carryOut(order, base, current, offer, footing)),
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
    order: EndpointOrder,
    { templateId, fields }: { templateId: string; fields: Partial<TemplateFields> },
  ): Promise<Endpoint | undefined> {
    const { templates, catalog } = this.#parts;
    const offer = await offerOf(catalog);
    const ids: FootingIds = {
      templateId,
      changesTemplate: true,
      registryIds: namedRegistries(order, fields),
      volumeIds: order.networkVolumeIds ?? networkVolumeIds,
    };
    let change: TemplateChange | undefined;
    const changing = this.#context.store.endpoints.change(caller.accountId, id, ids, (current, footing) => {
      const { template: before } = footing;
      if (before === undefined || current.templateId !== before.id)
        throw new BerthError('state', 'this endpoint has just got another template; try again');
      change = templates.change(caller, before, fields, footing);
      const { record: after, audit, follow } = change;
      const base = {
        ...current,
        ...followTemplate(
          current,
          containerOf(before, caller.accountId),
          containerOf(after, caller.accountId),
        ),
      };
      return {
        ...this.#changed(caller, current, carryOut(order, base, current, offer, footing)),
        changedTemplate: {
          record: after,
          audit,
          follow: (linked) => (linked.id === id ? undefined : follow(linked)),
        },
      };
    });
    const changed = await refuseTakenName(fields.name, changing);
    templates.tellFollowers(change);
    return changed;
  }

  #changed(caller: Caller, before: Endpoint, after: Endpoint): ChangedEndpoint {
    const record = withVersion(before, { ...after, updatedAt: this.#context.clock.now() });
    return {
      record,
      audit: auditOf(
        this.#context,
        caller,
        'update',
        KIND,
        before.id,
        changesBetween(before, record, HIDDEN),
      ),
    };
  }

  async #source(caller: Caller, endpoint: string, use: TemplateUse | undefined): Promise<Source | undefined> {
    if (use === undefined) return undefined;
    if (use.as === 'own') {
      const { name = `template of ${endpoint}`, image = '', ...rest } = ownFields(use.fields);
      return {
        use: 'own',
        template: this.#parts.templates.draft(caller, { ...rest, name, image, serverless: true }),
      };
    }
    const template = await this.#parts.templates.get(caller, use.id).catch((error: unknown) => {
      if (use.as === 'link' && error instanceof BerthError && error.code === 'not-found')
        throw noTemplate(use.id);
      throw error;
    });
    if (use.as === 'copy' && !template.serverless) {
      throw new BerthError('schema', 'Request validation failed.', {
        details: [
          `$.templateId: template ${JSON.stringify(template.name)} is for pods; an endpoint needs a serverless one`,
        ],
      });
    }
    return { use: use.as, template };
  }
}

/** A template of one's own is followed; one that belongs to someone else, or to Berth, is only copied: nobody else shall change what runs here. */
function isFollowed(caller: Pick<Caller, 'accountId'>, { use, template }: Source): boolean {
  return use === 'own' || (use === 'link' && template.accountId === caller.accountId);
}

function footingIds(
  caller: Caller,
  order: EndpointOrder,
  source: Source | undefined,
  volumeIds: readonly string[],
): FootingIds {
  const held = source !== undefined && source.use === 'link' && isFollowed(caller, source);
  return {
    ...(held && { templateId: source.template.id }),
    registryIds: namedRegistries(order, source?.template),
    volumeIds: order.networkVolumeIds ?? volumeIds,
  };
}

/** A template that is followed is taken as it is at the moment of writing; a copy loses a registry that has gone by then, as the template did. */
function currentTemplate(caller: Caller, source: Source, { template: held, registryIds }: Footing): Template {
  const { use, template } = source;
  if (use === 'link' && isFollowed(caller, source)) {
    if (held === undefined) throw noTemplate(template.id);
    return held;
  }
  if (use === 'own') checkRegistry(template.registryId, registryIds);
  return template.registryId === null || registryIds.includes(template.registryId)
    ? template
    : { ...template, registryId: null };
}

/** The endpoint with a template's container in it. A copy leaves no trace of where it came from. */
function built(endpoint: Endpoint, source: Source | undefined, template: Template): Endpoint {
  const withContainer = { ...endpoint, ...containerOf(template, endpoint.accountId) };
  if (source === undefined || source.use === 'copy') return withContainer;
  return {
    ...withContainer,
    templateId: template.id,
    templateLinked: isFollowed(endpoint, source),
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
function defaultsFrom({
  name,
  category,
  allowedCudaVersions,
}: Template): Pick<Endpoint, 'name' | 'compute' | 'allowedCudaVersions'> {
  return { name, compute: category === 'CPU' ? 'CPU' : 'GPU', allowedCudaVersions };
}

/** A template's CUDA versions are a default; a floor that is asked for takes their place. */
function withoutInheritedCuda(order: EndpointOrder): EndpointOrder {
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

function withOwnTemplate(changed: ChangedEndpoint, source: Source | undefined): ChangedEndpoint {
  return source?.use === 'own' ? { ...changed, template: source.template } : changed;
}

/** The template of one endpoint alone yields where its name is taken. */
async function retriedWithFreeName<T>(
  id: string,
  source: Source | undefined,
  write: (source: Source | undefined) => Promise<T>,
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

function noTemplate(id: string): BerthError {
  return rule(
    `template ${JSON.stringify(id.slice(0, 64))} does not exist, or is not yours to use; create it first or name another`,
  );
}
