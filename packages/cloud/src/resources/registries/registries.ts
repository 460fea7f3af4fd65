import { UniqueViolation } from '../../store/database.ts';
import type { Registry } from '../../store/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf } from '../context.ts';
import type { Context } from '../context.ts';

export interface Credentials {
  username: string;
  password: string;
}

const KIND = 'registry';

/** Saved credentials for private container images. They go in and are never shown again. */
export class Registries {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  async create(
    caller: Caller,
    { name, username, password }: Credentials & { name: string },
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
      await store.registries.insert(registry, auditOf(this.#context, caller, 'create', KIND, registry.id));
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

  async replaceCredentials(caller: Caller, id: string, credentials: Credentials): Promise<Registry> {
    const changed = await this.#context.store.registries.change(caller.accountId, id, (current) => ({
      record: { ...current, ...credentials },
      audit: auditOf(this.#context, caller, 'update', KIND, id, [
        { field: 'username' },
        { field: 'password' },
      ]),
    }));
    if (changed === undefined) throw notFound(KIND, id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Registry> {
    const found = await this.#context.store.registries.find(caller.accountId, id);
    if (found === undefined) throw notFound(KIND, id);
    return found;
  }

  list(caller: Caller): Promise<Registry[]> {
    return this.#context.store.registries.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.registries.remove(
      caller.accountId,
      id,
      auditOf(this.#context, caller, 'delete', KIND, id),
    );
    if (!removed) throw notFound(KIND, id);
  }
}
