import type { SettingType } from './setting-type.ts';

/** One thing that an operator can set. Its path in the file is its key in the list of knobs. */
export interface Setting<T = unknown> {
  type: SettingType<T>;
  default: T;
  /** What it is for, and why one would change it. */
  description: string;
  /** Where the value's form needs showing: lines of YAML. */
  example?: string;
  /** The environment variable, where it is not the one that the path gives. */
  variable?: string;
  /** Also a flag of `berth up`, under the name of the path. */
  flag?: true;
  /** Never shown: not in an error, not in a log. */
  secret?: true;
}

/** Holds the default to the type of the kind. */
export function defineSetting<T>(
  definition: Omit<Setting<T>, 'default'> & { default: NoInfer<T> },
): Setting<T> {
  return definition;
}

/** `webhooks.allowPrivate` is set by `BERTH_WEBHOOKS_ALLOW_PRIVATE`. Nothing for a knob that only the file can hold. */
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
