/**
 * One description per wire object: it validates what comes in, it is the TypeScript type
 * inside, and it is the text of the OpenAPI document. A schema is plain JSON Schema; its
 * type rides along and exists for the compiler alone.
 */
declare const type: unique symbol;

/** The name under which a schema stands in the OpenAPI document's components. */
const NAME = Symbol('schema name');
/** Marks a query parameter that is written as one comma-separated text. */
const COMMA_LIST = Symbol('comma list');

export interface Schema<T = unknown> {
  readonly [type]?: T;
  readonly [NAME]?: string;
  readonly [COMMA_LIST]?: true;
  readonly [keyword: string]: unknown;
}

export type Static<S> = S extends Schema<infer T> ? T : never;
export type Fields = Record<string, Schema>;

/** Words that any schema may carry for its readers, and the common limits. */
export interface Annotations {
  description?: string;
  default?: unknown;
  examples?: unknown[];
}
interface TextLimits extends Annotations {
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
}
interface NumberLimits extends Annotations {
  minimum?: number;
  maximum?: number;
}
interface ListLimits extends Annotations {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

type Simplify<T> = { [K in keyof T]: T[K] };
type ObjectOf<R extends Fields, O extends Fields> = Simplify<
  { [K in keyof R]: Static<R[K]> } & { [K in keyof O]?: Static<O[K]> }
>;

export function text(limits: TextLimits = {}): Schema<string> {
  return { type: 'string', ...limits };
}

export function integer(limits: NumberLimits = {}): Schema<number> {
  return { type: 'integer', ...limits };
}

export function number(limits: NumberLimits = {}): Schema<number> {
  return { type: 'number', ...limits };
}

export function boolean(words: Annotations = {}): Schema<boolean> {
  return { type: 'boolean', ...words };
}

export function stringEnum<const V extends string>(values: readonly V[], words: Annotations = {}): Schema<V> {
  return { type: 'string', enum: [...values], ...words };
}

export function list<T>(items: Schema<T>, limits: ListLimits = {}): Schema<T[]> {
  return { type: 'array', items, ...limits };
}

/** A query parameter such as `include=A,B`. */
export function commaList<T>(items: Schema<T>, limits: ListLimits = {}): Schema<T[]> {
  return { ...list(items, limits), [COMMA_LIST]: true };
}

export function map<T>(values: Schema<T>, words: Annotations = {}): Schema<Record<string, T>> {
  return { type: 'object', additionalProperties: values, ...words };
}

export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  if (typeof schema['type'] === 'string' && schema[NAME] === undefined && schema['enum'] === undefined)
    return { ...schema, type: [schema['type'], 'null'] };
  return { anyOf: [schema, { type: 'null' }] };
}

/** Any JSON value. */
export function anyValue(words: Annotations = {}): Schema {
  return { ...words };
}

/** A closed object: a key that is not named here is refused. */
export function object<R extends Fields, O extends Fields = Record<never, never>>(
  required: R,
  optional?: O,
  words: Annotations & { minProperties?: number } = {},
): Schema<ObjectOf<R, O>> {
  return {
    type: 'object',
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
    ...words,
  };
}

/** Gives a schema a place of its own in the OpenAPI document. */
export function named<T>(name: string, schema: Schema<T>): Schema<T> {
  return { ...schema, [NAME]: name };
}

export function schemaName(schema: Schema): string | undefined {
  return schema[NAME];
}

export function isCommaList(schema: Schema): boolean {
  return schema[COMMA_LIST] === true;
}

/** The fields of an object schema, for building a neighbour from it. */
export function propertiesOf(schema: Schema): Fields {
  return (schema['properties'] ?? {}) as Fields;
}
