import { UniqueViolation } from '../../store/database.ts';
import type { ModelVersion, ModelVersionStatus, RepoModel } from '../../domain/repo-model.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';

const RESOURCE = 'model';

export interface NewModel {
  owner: string;
  name: string;
  provider: string;
  status: string;
  credentialType: string | null;
  credentialReference: string | null;
  metadata: unknown;
}

/**
 * The model records of an account: where a model comes from and which versions it has. The files are not
 * stored here.
 */
export class Models {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  list({ accountId }: Caller): Promise<RepoModel[]> {
    return this.#context.store.models.list(accountId);
  }

  async find(caller: Caller, owner: string, name: string): Promise<RepoModel | undefined> {
    return (await this.list(caller)).find((model) => model.owner === owner && model.name === name);
  }

  /** Creates a model, or adds a version if it exists. */
  async add(
    caller: Caller,
    { metadata, ...fields }: NewModel,
  ): Promise<{ model: RepoModel; version: ModelVersion }> {
    const { store, clock, ids } = this.#context;
    const now = clock.now();
    const version: ModelVersion = {
      uuid: ids.resource(),
      hash: ids.resource(),
      status: 'PENDING',
      metadata: metadata ?? null,
      createdAt: now,
      updatedAt: now,
    };
    const known = await this.find(caller, fields.owner, fields.name);
    if (known !== undefined)
      return {
        model: await this.#change(caller, known.id, (model) => ({
          ...model,
          ...fields,
          versions: [...model.versions, version],
        })),
        version,
      };
    const model: RepoModel = {
      id: ids.resource(),
      accountId: caller.accountId,
      ...fields,
      versions: [version],
      createdAt: now,
      updatedAt: now,
    };
    try {
      await store.models.insert(model, auditEntry(this.#context, caller, 'create', RESOURCE, model.id));
    } catch (error) {
      if (error instanceof UniqueViolation)
        throw new BerthError(
          'conflict',
          `${fields.owner}/${fields.name} was added at the same time; try again`,
        );
      throw error;
    }
    return { model, version };
  }

  async remove(caller: Caller, owner: string, name: string): Promise<RepoModel> {
    const known = await this.find(caller, owner, name);
    if (
      known === undefined ||
      !(await this.#context.store.models.remove(
        caller.accountId,
        known.id,
        auditEntry(this.#context, caller, 'delete', RESOURCE, known.id),
      ))
    )
      throw notFound(RESOURCE, `${owner}/${name}`);
    return known;
  }

  /** Finds the version by uuid or hash; one of them is enough. */
  async setStatus(
    caller: Caller,
    { uuid, hash }: { uuid?: string; hash?: string },
    status: ModelVersionStatus,
  ): Promise<ModelVersion> {
    const matches = (version: ModelVersion): boolean =>
      (uuid !== undefined && version.uuid === uuid) || (hash !== undefined && version.hash === hash);
    const known = (await this.list(caller)).find(({ versions }) => versions.some(matches));
    const now = this.#context.clock.now();
    const changed =
      known === undefined
        ? undefined
        : await this.#change(caller, known.id, (model) => ({
            ...model,
            versions: model.versions.map((version) =>
              matches(version) ? { ...version, status, updatedAt: now } : version,
            ),
          }));
    const version = changed?.versions.find(matches);
    if (version === undefined) throw notFound('model version', uuid ?? hash ?? '');
    return version;
  }

  async #change(caller: Caller, id: string, next: (current: RepoModel) => RepoModel): Promise<RepoModel> {
    const changed = await this.#context.store.models.change(caller.accountId, id, (current) => ({
      record: { ...next(current), updatedAt: this.#context.clock.now() },
      audit: auditEntry(this.#context, caller, 'update', RESOURCE, id),
    }));
    if (changed === undefined) throw notFound(RESOURCE, id);
    return changed;
  }
}
