import { ruleError } from '../../support/errors.ts';

/** The ids of the registries that these records refer to. */
export function referencedRegistryIds(
  ...things: readonly ({ registryId?: string | null } | undefined)[]
): string[] {
  return things.flatMap((thing) => (typeof thing?.registryId === 'string' ? [thing.registryId] : []));
}

/** Throws if the account has no registry of this id. */
export function checkRegistryExists(registryId: string | null | undefined, found: readonly string[]): void {
  if (typeof registryId === 'string' && !found.includes(registryId)) {
    throw ruleError(
      `registry ${JSON.stringify(registryId.slice(0, 64))} does not exist in this account; create it ` +
        'first or leave it out',
    );
  }
}
