import type { Value } from './sql.ts';

/** Values by the names that a statement uses. */
export type NamedValues = Readonly<Record<string, unknown>>;

export interface NumberedStatement {
  text: string;
  /** The name of each parameter, in the order of their numbers. */
  names: readonly string[];
}

/**
 * Statements of the queue name their parameters (`:worker_id`), and both drivers bind by number, which is
 * the fastest way in each. This turns names into numbers, once for each statement. `::` is a cast and stays.
 */
export function numberParameters(text: string, sign: '?' | '$'): NumberedStatement {
  const names: string[] = [];
  const numbered = text.replace(/(?<!:):([a-z_]+)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `${sign}${names.indexOf(name) + 1}`;
  });
  return { text: numbered, names };
}

/** The values in the order of their numbers. */
export function numberedValues<T = Value>(names: readonly string[], values: NamedValues): T[] {
  return names.map((name) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the statement needs a value for :${name}`);
    return value as T;
  });
}
