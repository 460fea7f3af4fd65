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

/** Models that an account has written down: where they come from, and which versions of them there are. Their files are elsewhere. */
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

  /** A model that is there already gets one more version. */
  async add(
    caller: Caller,
    { metadata, ...wanted }: NewModel,
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
    const known = await this.find(caller, wanted.owner, wanted.name);
    if (known !== undefined)
      return {
        model: await this.#change(caller, known.id, (model) => ({
          ...model,
          ...wanted,
          versions: [...model.versions, version],
        })),
        version,
      };
    const model: RepoModel = {
      id: ids.resource(),
      accountId: caller.accountId,
      ...wanted,
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
          `${wanted.owner}/${wanted.name} was added at the same time; try again`,
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

  /** A version has both names, and one is enough. */
  async setStatus(
    caller: Caller,
    { uuid, hash }: { uuid?: string; hash?: string },
    status: ModelVersionStatus,
  ): Promise<ModelVersion> {
    const isMeant = (version: ModelVersion): boolean =>
      (uuid !== undefined && version.uuid === uuid) || (hash !== undefined && version.hash === hash);
    const known = (await this.list(caller)).find(({ versions }) => versions.some(isMeant));
    const now = this.#context.clock.now();
    const changed =
      known === undefined
        ? undefined
        : await this.#change(caller, known.id, (model) => ({
            ...model,
            versions: model.versions.map((version) =>
              isMeant(version) ? { ...version, status, updatedAt: now } : version,
            ),
          }));
    const version = changed?.versions.find(isMeant);
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
