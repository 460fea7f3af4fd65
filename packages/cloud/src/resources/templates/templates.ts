import type { Endpoint, Page, Template } from '../../store/records.ts';
import { UniqueViolation } from '../../store/database.ts';
import type { Changed, ChangedTemplate, TemplateFooting } from '../../store/store.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf, changesBetween } from '../context.ts';
import type { Context } from '../context.ts';
import { officialTemplates } from '../catalog/official-templates.ts';
import { needsRelease, withVersion } from '../endpoints/release.ts';
import { containerOf, followTemplate } from '../endpoints/template-link.ts';
import { checkRegistry, namedRegistries } from '../registries/reference.ts';
import { checkTemplate } from './rules.ts';

/** What a person may set; the rest is Berth's. */
export type TemplateFields = Omit<Template, 'id' | 'accountId' | 'createdAt' | 'updatedAt'>;
export type NewTemplate = Pick<TemplateFields, 'name' | 'image'> & Partial<TemplateFields>;

/** What a template is where nothing is said. The interfaces differ in some of these and say so themselves. */
const DEFAULTS: Omit<TemplateFields, 'name' | 'image'> = {
  args: '',
  containerDisk: 50,
  volumeSize: 0,
  volumePath: '/workspace',
  ports: [],
  portLabels: [],
  env: {},
  registryId: null,
  category: 'NVIDIA',
  public: false,
  serverless: false,
  readme: '',
  startSsh: true,
  startJupyter: true,
  startScript: '',
  advancedStart: false,
  allowedCudaVersions: [],
  config: null,
};

/** A change of a template that is about to be written. */
export interface TemplateChange extends ChangedTemplate {
  follow(linked: Endpoint): Changed<Endpoint> | undefined;
  /** The endpoints that it has reached, once it is written. */
  followers: ReadonlySet<string>;
}

const KIND = 'template';
/** Values of the environment are nobody's business but the container's. */
const HIDDEN: (keyof Template)[] = ['env', 'config'];

export class Templates {
  readonly #context: Context;
  readonly #onEndpointChanged: (endpointId: string) => void;

  /** `onEndpointChanged` hears of endpoints that a change of their template has reached. */
  constructor(context: Context, onEndpointChanged: (endpointId: string) => void = () => undefined) {
    this.#context = context;
    this.#onEndpointChanged = onEndpointChanged;
  }

  async create(caller: Caller, fields: NewTemplate): Promise<Template> {
    const record = this.draft(caller, fields);
    const inserting = this.#context.store.templates.insert(
      caller.accountId,
      { registryIds: namedRegistries(record) },
      ({ registryIds }) => {
        checkRegistry(record.registryId, registryIds);
        return { record, audit: auditOf(this.#context, caller, 'create', KIND, record.id) };
      },
    );
    return refuseTakenName(record.name, inserting);
  }

  /** A template that keeps the rules and is not kept yet; whether its registry is there is asked when it is. */
  draft(caller: Caller, fields: NewTemplate): Template {
    const { clock, ids } = this.#context;
    const now = clock.now();
    return checkTemplate({
      ...DEFAULTS,
      ...fields,
      id: ids.resource(10),
      accountId: caller.accountId,
      createdAt: now,
      updatedAt: now,
    });
  }

  /** Only what is said changes, also in the endpoints that follow this template. `command` makes the new command out of the present one. */
  async update(
    caller: Caller,
    id: string,
    fields: Partial<TemplateFields>,
    command?: (args: string) => string,
  ): Promise<Template> {
    let change: TemplateChange | undefined;
    const changing = this.#context.store.templates.change(
      caller.accountId,
      id,
      { registryIds: namedRegistries(fields) },
      (current, footing) => {
        change = this.change(
          caller,
          current,
          command === undefined ? fields : { ...fields, args: command(current.args) },
          footing,
        );
        return change;
      },
    );
    const changed = await refuseTakenName(fields.name, changing);
    if (changed === undefined) throw notFound(KIND, id);
    this.tellFollowers(change);
    return changed;
  }

  /** What the fields make of a template and of the endpoints that follow it, for the transaction that writes it. */
  change(
    caller: Caller,
    current: Template,
    fields: Partial<TemplateFields>,
    { registryIds }: TemplateFooting,
  ): TemplateChange {
    checkRegistry(fields.registryId, registryIds);
    const record = checkTemplate({ ...current, ...fields, updatedAt: this.#context.clock.now() });
    const followers = new Set<string>();
    const follow = (linked: Endpoint): Changed<Endpoint> | undefined => {
      const followed = this.#followed(caller, linked, current, record);
      if (followed !== undefined) followers.add(linked.id);
      return followed;
    };
    return {
      record,
      audit: auditOf(
        this.#context,
        caller,
        'update',
        KIND,
        current.id,
        changesBetween(current, record, HIDDEN),
      ),
      follow,
      followers,
    };
  }

  /** To be called when the change is written. */
  tellFollowers(change: TemplateChange | undefined): void {
    for (const endpointId of change?.followers ?? []) this.#onEndpointChanged(endpointId);
  }

  /** One's own, anyone's public one, or one that comes with Berth. */
  async get(caller: Caller, id: string): Promise<Template> {
    const found = await this.find(caller, id);
    if (found === undefined) throw notFound(KIND, id);
    return found;
  }

  /** The same; undefined where there is none that the caller may see. */
  async find(caller: Caller, id: string): Promise<Template | undefined> {
    const { templates } = this.#context.store;
    return (
      (await templates.find(caller.accountId, id)) ??
      (await templates.findPublic(id)) ??
      officialTemplates.find((template) => template.id === id)
    );
  }

  list(caller: Caller, page?: Page): Promise<Template[]> {
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
      auditOf(this.#context, caller, 'delete', KIND, id),
    );
    if (!removed) throw notFound(KIND, id);
  }

  async removeByName(caller: Caller, name: string): Promise<void> {
    const found = await this.#context.store.templates.findByName(caller.accountId, name);
    if (found === undefined) throw notFound(KIND, name);
    await this.remove(caller, found.id);
  }

  #followed(
    caller: Caller,
    linked: Endpoint,
    before: Template,
    after: Template,
  ): Changed<Endpoint> | undefined {
    const container = followTemplate(
      linked,
      containerOf(before, linked.accountId),
      containerOf(after, linked.accountId),
    );
    const endpoint = { ...linked, ...container, updatedAt: this.#context.clock.now() };
    if (!needsRelease(linked, endpoint)) return undefined;
    const record = withVersion(linked, endpoint);
    return {
      record,
      audit: auditOf(
        this.#context,
        caller,
        'update',
        'endpoint',
        linked.id,
        changesBetween(linked, record, ['env']),
      ),
    };
  }
}

export async function refuseTakenName<T>(name: string | undefined, work: Promise<T>): Promise<T> {
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
