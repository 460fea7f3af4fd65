import { UniqueViolation } from '../../store/database.ts';
import type { Change, Secret } from '../../store/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { auditOf } from '../context.ts';
import type { Context } from '../context.ts';
import { checkSecretName, checkSecretValue } from './names.ts';
import { referencedSecrets, resolveSecrets } from './references.ts';

const KIND = 'secret';

export interface NewSecret {
  name: string;
  value: string;
  description: string | null;
}

export class Secrets {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  async create(caller: Caller, { name, value, description }: NewSecret): Promise<Secret> {
    checkSecretName(name);
    checkSecretValue(value);
    const { store, clock, ids } = this.#context;
    const now = clock.now();
    const secret: Secret = {
      id: ids.resource(),
      accountId: caller.accountId,
      name,
      description,
      createdAt: now,
      updatedAt: now,
      valueUpdatedAt: now,
    };
    try {
      await store.secrets.insert(secret, value, auditOf(this.#context, caller, 'create', KIND, secret.id));
    } catch (error) {
      if (error instanceof UniqueViolation)
        throw new BerthError(
          'conflict',
          `a secret named ${JSON.stringify(name)} exists already; update its value, or choose another name`,
        );
      throw error;
    }
    return secret;
  }

  /** A description of null removes it. */
  async update(
    caller: Caller,
    id: string,
    { value, description }: { value?: string; description?: string | null },
  ): Promise<Secret> {
    if (value !== undefined) checkSecretValue(value);
    const changed = await this.#context.store.secrets.change(caller.accountId, id, (current) => {
      const now = this.#context.clock.now();
      const record: Secret = {
        ...current,
        description: description === undefined ? current.description : description,
        updatedAt: now,
        valueUpdatedAt: value === undefined ? current.valueUpdatedAt : now,
      };
      const changes: Change[] = [];
      if (value !== undefined) changes.push({ field: 'value' });
      if (description !== undefined)
        changes.push({ field: 'description', from: current.description, to: description });
      const changed = { record, audit: auditOf(this.#context, caller, 'update', KIND, id, changes) };
      return value === undefined ? changed : { ...changed, value };
    });
    if (changed === undefined) throw notFound(KIND, id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Secret> {
    const found = await this.#context.store.secrets.find(caller.accountId, id);
    if (found === undefined) throw notFound(KIND, id);
    return found;
  }

  list(caller: Caller): Promise<Secret[]> {
    return this.#context.store.secrets.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.secrets.remove(
      caller.accountId,
      id,
      auditOf(this.#context, caller, 'delete', KIND, id),
    );
    if (!removed) throw notFound(KIND, id);
  }

  /** The environment of a container that starts now. */
  async resolve(accountId: string, env: Record<string, string>): Promise<Record<string, string>> {
    return resolveSecrets(env, await this.#context.store.secrets.values(accountId, referencedSecrets(env)));
  }
}
