import type { SettingType } from './setting-type.ts';

/** One setting. Its path in the configuration file is its key in `settings`. */
export interface Setting<T = unknown> {
  type: SettingType<T>;
  default: T;
  /** What it is for, and why one would change it. */
  description: string;
  /** Lines of YAML, for values whose form is not obvious. */
  example?: string;
  /** The environment variable, if it is not derived from the path. */
  variable?: string;
  /** Also a flag of `berth up`, under the name of the path. */
  flag?: true;
  /** Never shown: not in an error, not in a log. */
  secret?: true;
}

/** Checks that the default has the type of the setting. */
export function defineSetting<T>(
  definition: Omit<Setting<T>, 'default'> & { default: NoInfer<T> },
): Setting<T> {
  return definition;
}

/**
 * `webhooks.allowPrivate` is set by `BERTH_WEBHOOKS_ALLOW_PRIVATE`. Undefined for a setting that only the
 * file can hold.
 */
export function environmentVariableOf(
  path: string,
  { type, variable }: Pick<Setting, 'variable'> & { type: { fromText?: unknown } },
): string | undefined {
  if (type.fromText === undefined) return undefined;
  return (
    variable ??
    `BERTH_${path
      .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replaceAll('.', '_')
      .toUpperCase()}`
  );
}
