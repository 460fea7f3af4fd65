import { ruleError } from '../../support/errors.ts';
import { formats, formatDescriptions } from '../../support/string-formats.ts';
import { nameFindings } from '../../domain/templates/template-rules.ts';

type With<T, K extends keyof T> = T & { [P in K]-?: Exclude<T[P], undefined> };

/**
 * The input with these fields in it. The schema asks for none of them, since clients declare all their
 * variables as optional.
 */
export function requireFields<T extends object, K extends keyof T & string>(
  input: T,
  ...names: K[]
): With<T, K> {
  if (hasFields(input, names)) return input;
  const missing = names.filter((name) => input[name] === undefined);
  throw ruleError(`${joinNames(missing)} ${missing.length === 1 ? 'is' : 'are'} required: missing or empty`);
}

function hasFields<T extends object, K extends keyof T>(input: T, names: readonly K[]): input is With<T, K> {
  return names.every((name) => input[name] !== undefined);
}

export function checkName(name: string): string {
  const [finding] = nameFindings(name);
  if (finding !== undefined) throw ruleError(finding);
  return name;
}

/** A DateTime as the clock counts. */
export function parseDateTime(name: string, value: unknown): number {
  if (typeof value !== 'string' || formats['date-time']?.(value) !== true)
    throw ruleError(`${name} must be ${formatDescriptions['date-time']}`);
  return Date.parse(value);
}

function joinNames(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
