import type { Endpoint, PageRequest, Template } from '../../domain/records.ts';
import { UniqueViolation } from '../../store/database.ts';
import type { AuditedTemplateChange, TemplateReferences } from '../../store/store.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { officialTemplates } from './official-templates.ts';
import { needsRelease, withVersion } from '../endpoints/endpoint-release.ts';
import { containerFromTemplate, mergeTemplateChange } from '../../domain/templates/template-inheritance.ts';
import { checkRegistryExists, referencedRegistryIds } from '../registries/registry-references.ts';
import { checkTemplate } from '../../domain/templates/template-rules.ts';
import type { AuditedChange } from '../../store/collection.ts';
import {
  type TemplateFields,
  type NewTemplate,
  TEMPLATE_DEFAULTS,
} from '../../domain/templates/template-defaults.ts';

/** A change of a template that is about to be written. */
export interface TemplateUpdate extends AuditedTemplateChange {
  updateLinked(linked: Endpoint): AuditedChange<Endpoint> | undefined;
  /** The endpoints that were changed with it. Complete once the change is written. */
  changedEndpointIds: ReadonlySet<string>;
}

const RESOURCE = 'template';
/** These values may be secrets, so the audit log does not show them. */
const AUDIT_HIDDEN_FIELDS: (keyof Template)[] = ['env', 'config'];

export class Templates {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  async create(caller: Caller, fields: NewTemplate): Promise<Template> {
    const record = this.draft(caller, fields);
    const inserting = this.#context.store.templates.insert(
      caller.accountId,
      { registryIds: referencedRegistryIds(record) },
      ({ registryIds }) => {
        checkRegistryExists(record.registryId, registryIds);
        return { record, audit: auditEntry(this.#context, caller, 'create', RESOURCE, record.id) };
      },
    );
    return rejectDuplicateName(record.name, inserting);
  }

  /** A valid template that is not stored yet. The registry is checked when the template is stored. */
  draft(caller: Caller, fields: NewTemplate): Template {
    const { clock, ids } = this.#context;
    const now = clock.now();
    return checkTemplate({
      ...TEMPLATE_DEFAULTS,
      ...fields,
      id: ids.resource(10),
      accountId: caller.accountId,
      createdAt: now,
      updatedAt: now,
    });
  }

  /**
   * Changes only the given fields, also in linked endpoints. `command` computes the new command from the
   * current one.
   */
  async update(
    caller: Caller,
    id: string,
    fields: Partial<TemplateFields>,
    command?: (args: string) => string,
  ): Promise<Template> {
    let change: TemplateUpdate | undefined;
    const changing = this.#context.store.templates.change(
      caller.accountId,
      id,
      { registryIds: referencedRegistryIds(fields) },
      (current, references) => {
        change = this.prepareUpdate(
          caller,
          current,
          command === undefined ? fields : { ...fields, args: command(current.args) },
          references,
        );
        return change;
      },
    );
    const changed = await rejectDuplicateName(fields.name, changing);
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.notifyLinkedEndpoints(change);
    return changed;
  }

  /** Computes the changed template and its linked endpoints, for the transaction that writes them. */
  prepareUpdate(
    caller: Caller,
    current: Template,
    fields: Partial<TemplateFields>,
    { registryIds }: TemplateReferences,
  ): TemplateUpdate {
    checkRegistryExists(fields.registryId, registryIds);
    const record = checkTemplate({ ...current, ...fields, updatedAt: this.#context.clock.now() });
    const changedEndpointIds = new Set<string>();
    const updateLinked = (linked: Endpoint): AuditedChange<Endpoint> | undefined => {
      const updated = this.#updatedEndpoint(caller, linked, current, record);
      if (updated !== undefined) changedEndpointIds.add(linked.id);
      return updated;
    };
    return {
      record,
      audit: auditEntry(
        this.#context,
        caller,
        'update',
        RESOURCE,
        current.id,
        diffRecords(current, record, AUDIT_HIDDEN_FIELDS),
      ),
      updateLinked,
      changedEndpointIds,
    };
  }

  /** Call after the change is written. */
  notifyLinkedEndpoints(change: TemplateUpdate | undefined): void {
    for (const endpointId of change?.changedEndpointIds ?? [])
      this.#context.events.publish('endpoint.changed', { endpointId, source: 'request' });
  }

  /** Finds a template of the caller, a public one or an official one; throws if there is none. */
  async get(caller: Caller, id: string): Promise<Template> {
    const found = await this.find(caller, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  /** Like get(), but undefined if the caller can see no such template. */
  async find(caller: Caller, id: string): Promise<Template | undefined> {
    const { templates } = this.#context.store;
    return (
      (await templates.find(caller.accountId, id)) ??
      (await templates.findPublic(id)) ??
      officialTemplates.find((template) => template.id === id)
    );
  }

  list(caller: Caller, page?: PageRequest): Promise<Template[]> {
    return this.#context.store.templates.list(caller.accountId, page);
  }

  /** Public templates of every account. */
  listPublic(limit: number): Promise<Template[]> {
    return this.#context.store.templates.listPublic(limit);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.templates.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
  }

  async removeByName(caller: Caller, name: string): Promise<void> {
    const found = await this.#context.store.templates.findByName(caller.accountId, name);
    if (found === undefined) throw notFound(RESOURCE, name);
    await this.remove(caller, found.id);
  }

  #updatedEndpoint(
    caller: Caller,
    linked: Endpoint,
    before: Template,
    after: Template,
  ): AuditedChange<Endpoint> | undefined {
    const container = mergeTemplateChange(
      linked,
      containerFromTemplate(before, linked.accountId),
      containerFromTemplate(after, linked.accountId),
    );
    const endpoint = { ...linked, ...container, updatedAt: this.#context.clock.now() };
    if (!needsRelease(linked, endpoint)) return undefined;
    const record = withVersion(linked, endpoint);
    return {
      record,
      audit: auditEntry(
        this.#context,
        caller,
        'update',
        'endpoint',
        linked.id,
        diffRecords(linked, record, ['env']),
      ),
    };
  }
}

export async function rejectDuplicateName<T>(name: string | undefined, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UniqueViolation)
      throw new BerthError(
        'taken',
        `a template named ${JSON.stringify(name)} exists already; choose another name, or update that one by its id`,
      );
    throw error;
  }
}
