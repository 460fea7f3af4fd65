import { UniqueViolation } from '../../store/database.ts';
import type { Registry } from '../../domain/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';

export interface RegistryCredentials {
  username: string;
  password: string;
}

const RESOURCE = 'registry';

/** Stored credentials for private container registries. Passwords are never returned. */
export class Registries {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
    this.#context = context;
  }

  async create(
    caller: Caller,
    { name, username, password }: RegistryCredentials & { name: string },
  ): Promise<Registry> {
    const { store, clock, ids } = this.#context;
    const registry: Registry = {
      id: ids.resource(),
      accountId: caller.accountId,
      name,
      username,
      password,
      createdAt: clock.now(),
    };
    try {
      await store.registries.insert(
        registry,
        auditEntry(this.#context, caller, 'create', RESOURCE, registry.id),
      );
    } catch (error) {
      if (error instanceof UniqueViolation)
        throw new BerthError(
          'taken',
          `a registry named ${JSON.stringify(name)} exists already; choose another name`,
        );
      throw error;
    }
    return registry;
  }

  async replaceCredentials(caller: Caller, id: string, credentials: RegistryCredentials): Promise<Registry> {
    const changed = await this.#context.store.registries.change(caller.accountId, id, (current) => ({
      record: { ...current, ...credentials },
      audit: auditEntry(this.#context, caller, 'update', RESOURCE, id, [
        { field: 'username' },
        { field: 'password' },
      ]),
    }));
    if (changed === undefined) throw notFound(RESOURCE, id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Registry> {
    const found = await this.#context.store.registries.find(caller.accountId, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  list(caller: Caller): Promise<Registry[]> {
    return this.#context.store.registries.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.registries.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
  }
}
