import { ruleError } from '../../support/errors.ts';

/** `{{ RUNPOD_SECRET_name }}`, spaces inside as you like. */
const REFERENCE = /\{\{\s*RUNPOD_SECRET_([A-Za-z_][A-Za-z0-9_./-]*)\s*\}\}/g;

/** The names of the secrets that these values refer to. */
export function referencedSecrets(env: Record<string, string>): string[] {
  const names = Object.values(env).flatMap((value) =>
    [...value.matchAll(REFERENCE)].map((match) => match[1] ?? ''),
  );
  return [...new Set(names)];
}

/**
 * The environment as the container sees it. Done when a container starts and never before:
 * what is stored and shown keeps the reference. An unknown name stops the start, since an
 * empty value in its place would hide the mistake.
 */
export function resolveSecrets(
  env: Record<string, string>,
  values: ReadonlyMap<string, string>,
): Record<string, string> {
  const missing = referencedSecrets(env).filter((name) => !values.has(name));
  if (missing.length > 0)
    throw ruleError(
      `the environment refers to secrets that do not exist: ${missing.join(', ')}; create them or remove the reference`,
    );
  return Object.fromEntries(
    Object.entries(env).map(([key, value]) => [
      key,
      value.replaceAll(REFERENCE, (_, name: string) => values.get(name) ?? ''),
    ]),
  );
}
