import type { Endpoint, PageRequest, Template } from '../../domain/records.ts';
import type { AuditedEndpointChange, EndpointReferenceIds } from '../../store/store.ts';
import { BerthError, notFound, schemaError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { auditEntry, diffRecords, withinQuotas } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { referencedRegistryIds } from '../registries/registry-references.ts';
import { rejectDuplicateName } from '../templates/templates.ts';
import type { TemplateUpdate, Templates } from '../templates/templates.ts';
import type { EndpointCache } from './endpoint-cache.ts';
import {
  type ContainerSource,
  currentTemplate,
  ownFields,
  referenceIds,
  retriedWithFreeName,
  templateDefaults,
  unknownTemplateError,
  withOwnTemplate,
  withTemplateContainer,
  withoutInheritedCuda,
} from './endpoint-container-source.ts';
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
/** Values of environment variables may be secrets, so the audit log does not show them. */
const AUDIT_HIDDEN_FIELDS: (keyof Endpoint)[] = ['env'];

export interface EndpointsDeps {
  catalog: Catalog;
  templates: Templates;
  cache: EndpointCache;
  /** The default for endpoints without the `accelerate` setting. */
  acceleratesByDefault?: boolean;
  /** Deletes what belongs to an endpoint. */
  onRemoved(endpointId: string): Promise<void>;
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

  async create(caller: Caller, input: EndpointInput): Promise<Endpoint> {
    const { store, clock, ids } = this.#context;
    const catalogSnapshot = await readCatalogSnapshot(this.#deps.catalog);
    const id = newEndpointId(ids);
    const now = clock.now();
    const source = await this.#source(caller, id, input.template);
    const wantedWorkers = input.settings({
      ...ENDPOINT_DEFAULTS,
      id,
      accountId: caller.accountId,
      createdAt: now,
      updatedAt: now,
    }).workersMax;
    const needs = { workers: wantedWorkers ?? ENDPOINT_DEFAULTS.workersMax };
    const created = await withinQuotas(this.#context, caller.accountId, needs, () =>
      retriedWithFreeName(id, source, (from) =>
        store.endpoints.insert(caller.accountId, referenceIds(caller, input, from, []), (references) => {
          const blank: Endpoint = {
            ...ENDPOINT_DEFAULTS,
            id,
            accountId: caller.accountId,
            createdAt: now,
            updatedAt: now,
          };
          const template = from && currentTemplate(caller, from, references);
          const base =
            template === undefined
              ? blank
              : { ...withTemplateContainer(blank, from, template), ...templateDefaults(template) };
          const record = applyEndpointInput(
            withoutInheritedCuda(input),
            base,
            undefined,
            catalogSnapshot,
            references,
          );
          return withOwnTemplate(
            { record, audit: auditEntry(this.#context, caller, 'create', RESOURCE, id) },
            from,
          );
        }),
      ),
    );
    this.#context.events.publish('endpoint.changed', { endpointId: id, source: 'request' });
    return created;
  }

  async update(caller: Caller, id: string, input: EndpointInput): Promise<Endpoint> {
    const present = await this.get(caller, id);
    const { templateId, templateBound } = present;
    const own =
      input.template?.as === 'own' && templateBound && templateId !== null
        ? { templateId, fields: ownFields(input.template.fields) }
        : undefined;
    const { workersMax = present.workersMax } = input.settings(present);
    const needs = { workers: Math.max(0, workersMax - present.workersMax) };
    const changed = await withinQuotas(this.#context, caller.accountId, needs, () =>
      own === undefined
        ? this.#change(caller, present, input)
        : this.#changeWithTemplate(caller, present, input, own),
    );
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

  /**
   * The linked template of an endpoint, or else one built from its settings. Also works if the endpoint and
   * its template were deleted at the same time.
   */
  async templateOf(caller: Caller, endpoint: Endpoint): Promise<Template> {
    if (!endpoint.templateLinked || endpoint.templateId === null) return impliedTemplate(endpoint);
    return this.#deps.templates.get(caller, endpoint.templateId).catch((error: unknown) => {
      if (error instanceof BerthError && error.code === 'not-found') return impliedTemplate(endpoint);
      throw error;
    });
  }

  /** Templates that belong to a single endpoint: template id to endpoint id. */
  async boundTemplates(caller: Caller): Promise<Map<string, string>> {
    const bound = (await this.list(caller)).filter(({ templateBound }) => templateBound);
    return new Map(bound.map(({ id, templateId }) => [templateId ?? '', id]));
  }

  /** Also deletes its jobs, its workers and its own template. */
  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.endpoints.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    this.#deps.cache.invalidate(id);
    if (!removed) throw notFound(RESOURCE, id);
    this.#context.events.publish('endpoint.removed', {
      endpointId: id,
      accountId: caller.accountId,
      source: 'request',
    });
    await this.#deps.onRemoved(id);
  }

  async #change(caller: Caller, present: Endpoint, input: EndpointInput): Promise<Endpoint | undefined> {
    const catalogSnapshot = await readCatalogSnapshot(this.#deps.catalog);
    // Naming the template that the endpoint already has changes nothing.
    const isSame = input.template?.as === 'link' && input.template.id === present.templateId;
    const source = isSame ? undefined : await this.#source(caller, present.id, input.template);
    return retriedWithFreeName(present.id, source, (from) =>
      this.#context.store.endpoints.change(
        caller.accountId,
        present.id,
        referenceIds(caller, input, from, present.networkVolumeIds),
        (current, references) => {
          const template = from && currentTemplate(caller, from, references);
          const base = template === undefined ? current : withTemplateContainer(current, from, template);
          return withOwnTemplate(
            this.#changed(
              caller,
              current,
              applyEndpointInput(input, base, current, catalogSnapshot, references),
            ),
            from,
          );
        },
      ),
    );
  }

  /** Changes the endpoint and its own template in one transaction, as one release. */
  async #changeWithTemplate(
    caller: Caller,
    { id, networkVolumeIds }: Endpoint,
    input: EndpointInput,
    { templateId, fields }: { templateId: string; fields: Partial<TemplateFields> },
  ): Promise<Endpoint | undefined> {
    const { templates, catalog } = this.#deps;
    const catalogSnapshot = await readCatalogSnapshot(catalog);
    const ids: EndpointReferenceIds = {
      templateId,
      changesTemplate: true,
      registryIds: referencedRegistryIds(input, fields),
      volumeIds: input.networkVolumeIds ?? networkVolumeIds,
    };
    let change: TemplateUpdate | undefined;
    const changing = this.#context.store.endpoints.change(
      caller.accountId,
      id,
      ids,
      (current, references) => {
        const { template: before } = references;
        if (before === undefined || current.templateId !== before.id)
          throw new BerthError(
            'state',
            'another request changed the template of this endpoint at the same time; try again',
          );
        change = templates.prepareUpdate(caller, before, fields, references);
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
          ...this.#changed(
            caller,
            current,
            applyEndpointInput(input, base, current, catalogSnapshot, references),
          ),
          changedTemplate: {
            record: after,
            audit,
            updateLinked: (linked) => (linked.id === id ? undefined : updateLinked(linked)),
          },
        };
      },
    );
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
