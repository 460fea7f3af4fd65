import { createRequire } from 'node:module';
import type * as AjvModule from 'ajv/dist/2020.js';
import type { Ajv2020, Options, ValidateFunction } from 'ajv/dist/2020.js';
import { validationFindings } from './validation-findings.ts';
import type { ValueSource } from './validation-findings.ts';
import { formats } from '../../support/string-formats.ts';
import { propertiesOf, isCommaList } from './json-schema.ts';
import type { Schema } from './json-schema.ts';

/**
 * Checks what comes in against its schema. Loading the validator costs about 40 ms and each
 * schema a few more, so both wait for the first value that needs them: a server that has just
 * started has paid for neither.
 */
export type Validator = (value: unknown) => string[];
export type RawQuery = Record<string, string | string[] | undefined>;
export type QueryReader<T> = (raw: RawQuery) => { value: T; findings: string[] };

const bodyValidators = new WeakMap<Schema, Validator>();
const queryReaders = new WeakMap<Schema, QueryReader<unknown>>();

/**
 * A check for values of this schema: it answers what has to be changed, nothing where all is well, and leaves
 * the value as it is.
 */
export function validator(schema: Schema): Validator {
  return memoized(bodyValidators, schema, () => createValidator(schema, 'body'));
}

/**
 * Reads a query string, already taken apart into keys, as this schema wants it. Keys that the
 * schema does not name are ignored. The value is to be used only where there are no findings.
 */
export function queryReader<T>(schema: Schema<T>): QueryReader<T> {
  return memoized(queryReaders, schema, () => createQueryReader(schema)) as QueryReader<T>;
}

function createQueryReader(schema: Schema): QueryReader<unknown> {
  const fields = Object.entries(propertiesOf(schema));
  const check = createValidator(schema, 'query');
  return (raw) => {
    const value: Record<string, unknown> = {};
    for (const [name, field] of fields) {
      const given = Object.hasOwn(raw, name) ? raw[name] : undefined;
      if (given !== undefined) value[name] = readField(given, field);
      else if (field['default'] !== undefined) value[name] = structuredClone(field['default']);
    }
    return { value, findings: check(value) };
  };
}

/** Repeated keys stay a list where one value is wanted; the check then says so. */
function readField(given: string | string[], field: Schema): unknown {
  const lists = alternatives(field).find(
    (schema) =>
      schema['type'] === 'array' || (Array.isArray(schema['type']) && schema['type'].includes('array')),
  );
  if (lists === undefined) return typeof given === 'string' ? readText(given, field) : given;
  const texts = [given].flat();
  const parts = isCommaList(lists)
    ? texts
        .flatMap((text) => text.split(','))
        .map((part) => part.trim())
        .filter((part) => part !== '')
    : texts;
  return parts.map((part) => readText(part, (lists['items'] ?? {}) as Schema));
}

const INTEGER = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const BOOLEANS = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/** Text that does not read as what is wanted stays text; the check then says so. */
function readText(text: string, schema: Schema): unknown {
  const types = new Set(alternatives(schema).flatMap((alternative) => alternative['type']));
  if (types.has('integer') && INTEGER.test(text)) return Number(text);
  if (types.has('number') && NUMBER.test(text)) return Number(text);
  if (types.has('boolean')) return BOOLEANS.get(text.toLowerCase()) ?? text;
  return text;
}

function alternatives(schema: Schema): Schema[] {
  const branches = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined;
  return branches === undefined ? [schema] : branches.flatMap(alternatives);
}

/** The findings of a larger value would themselves be too large; of such a value only the first is reported. */
const MAX_DETAILED_NODES = 5000;

function createValidator(schema: Schema, origin: ValueSource): Validator {
  let first: ValidateFunction | undefined;
  let every: ValidateFunction | undefined;
  return (value) => {
    try {
      first ??= ajv(false).compile(schema);
      if (first(value)) return [];
      if (!hasMoreNodes(value, MAX_DETAILED_NODES)) {
        every ??= ajv(true).compile(schema);
        if (!every(value)) return validationFindings(every.errors ?? [], value, origin);
      }
      return validationFindings(first.errors ?? [], value, origin);
    } catch (error) {
      // Comparing list items with each other goes as deep as they do.
      if (error instanceof RangeError) return ['$: nested too deeply'];
      throw error;
    }
  };
}

/** Walks with a list of its own rather than by recursion: depth is the sender's choice. */
function hasMoreNodes(value: unknown, limit: number): boolean {
  const waiting: object[] = [];
  let parts = 0;
  const visit = (part: unknown): void => {
    parts += 1;
    if (typeof part === 'object' && part !== null) waiting.push(part);
  };
  visit(value);
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    for (const name in part) {
      visit((part as Record<string, unknown>)[name]);
      if (parts > limit) return true;
    }
  }
  return false;
}

const OPTIONS: Options = {
  strict: true,
  // An alternative may require a property that the schema around it describes.
  strictRequired: false,
  allowUnionTypes: true,
  // `toString` and its kind are not properties that anyone sent.
  ownProperties: true,
  // Schemas are written by us and typed; checking them against the meta-schema costs 50 ms.
  meta: false,
  validateSchema: false,
  // Findings are worded in findings.ts.
  messages: false,
  formats,
};

const instances = new Map<boolean, Ajv2020>();

function ajv(allErrors: boolean): Ajv2020 {
  return memoized(instances, allErrors, () => {
    const { Ajv2020: Validator } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof AjvModule;
    return new Validator({ ...OPTIONS, allErrors });
  });
}

function memoized<K, V>(
  known: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}
