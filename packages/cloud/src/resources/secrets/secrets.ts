import { UniqueViolation } from '../../store/database.ts';
import type { FieldChange, Secret } from '../../domain/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { checkSecretName, checkSecretValue } from '../../domain/secrets/secret-rules.ts';
import { referencedSecrets, resolveSecrets } from '../../domain/secrets/secret-references.ts';

const RESOURCE = 'secret';

export interface NewSecret {
  name: string;
  value: string;
  description: string | null;
}

export class Secrets {
  readonly #context: ResourceContext;

  constructor(context: ResourceContext) {
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
      await store.secrets.insert(
        secret,
        value,
        auditEntry(this.#context, caller, 'create', RESOURCE, secret.id),
      );
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
      const changes: FieldChange[] = [];
      if (value !== undefined) changes.push({ field: 'value' });
      if (description !== undefined)
        changes.push({ field: 'description', from: current.description, to: description });
      const changed = { record, audit: auditEntry(this.#context, caller, 'update', RESOURCE, id, changes) };
      return value === undefined ? changed : { ...changed, value };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<Secret> {
    const found = await this.#context.store.secrets.find(caller.accountId, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  list(caller: Caller): Promise<Secret[]> {
    return this.#context.store.secrets.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.secrets.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
  }

  /** The environment of a container, with references to secrets replaced by their values. */
  async resolve(accountId: string, env: Record<string, string>): Promise<Record<string, string>> {
    return resolveSecrets(
      env,
      await this.#context.store.secrets.findValues(accountId, referencedSecrets(env)),
    );
  }
}
