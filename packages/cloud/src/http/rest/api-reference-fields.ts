import { html, renderInlineCode } from './html-template.ts';
import type { Html } from './html-template.ts';
import type { JsonSchema } from './openapi.ts';

/** How a schema is shown: its type in words, its limits, and its fields as the rows of one table. */
export type Schemas = Record<string, JsonSchema>;

/** Fields further down are found by following the link to their schema. */
const DEEPEST_LEVEL = 6;
const SCHEMA_REF_PREFIX = '#/components/schemas/';

export function schemaAnchor(name: string): string {
  return `schema-${name.replace(/[^\w.-]/g, '-')}`;
}

/** The type, where a named schema is a link to its own place on the page. */
export function typeLabel(schema: JsonSchema): Html {
  const name = referredName(schema);
  if (name !== undefined) return html`<a href="#${schemaAnchor(name)}">${name}</a>`;
  const choices = alternatives(schema);
  if (choices.length > 0) return html`${separated(choices.map(typeLabel), ' or ')}`;
  if ('const' in schema) return html`<code>${JSON.stringify(schema['const'])}</code>`;
  const types = [
    schema['type'] ?? (schema['properties'] === undefined ? 'any' : 'object'),
  ].flat() as string[];
  return html`${separated(
    types.map((type) => simpleType(type, schema)),
    ' or ',
  )}`;
}

function simpleType(type: string, schema: JsonSchema): Html {
  if (type === 'array') return html`list of ${typeLabel(asSchema(schema['items']) ?? {})}`;
  const values = asSchema(schema['additionalProperties']);
  if (type === 'object' && values !== undefined) return html`map to ${typeLabel(values)}`;
  return type === 'string' && schema['format'] !== undefined
    ? html`${String(schema['format'])}`
    : html`${type}`;
}

/** A table of the fields of a schema, those of its parts indented below them; nothing for a schema without fields. */
export function fieldTable(schema: JsonSchema, schemas: Schemas, expandNamed: boolean): Html | undefined {
  const rows = fieldRows(schema, schemas, expandNamed, 0, new Set());
  if (rows.length === 0) return undefined;
  return html`<div class="scroll"><table class="fields"><thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Description</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function fieldRows(
  schema: JsonSchema,
  schemas: Schemas,
  expandNamed: boolean,
  level: number,
  above: ReadonlySet<string>,
): Html[] {
  const name = referredName(schema);
  if (level > DEEPEST_LEVEL || (name !== undefined && ((level > 0 && !expandNamed) || above.has(name))))
    return [];
  const inside = name === undefined ? above : new Set([...above, name]);
  const own = resolved(schema, schemas);
  const deeper = (part: unknown): Html[] =>
    asSchema(part) === undefined ? [] : fieldRows(asSchema(part)!, schemas, expandNamed, level, inside);

  const required = (own['required'] ?? []) as string[];
  const rows = Object.entries((own['properties'] ?? {}) as Schemas).flatMap(([field, part]) => [
    fieldRow(field, part, schemas, required.includes(field), level),
    ...fieldRows(part, schemas, expandNamed, level + 1, inside),
  ]);
  const forms = alternatives(own)
    .map(deeper)
    .filter((form) => form.length > 0);
  const chosen =
    forms.length > 1
      ? forms.map((form, index) => [
          html`<tr class="form"><td colspan="3" class="level-${level}">form ${index + 1} of ${forms.length}</td></tr>`,
          form,
        ])
      : forms;
  const together = ((own['allOf'] ?? []) as JsonSchema[]).flatMap(deeper);
  return [
    ...rows,
    ...deeper(own['items']),
    ...deeper(own['additionalProperties']),
    ...chosen.flat(2),
    ...together,
  ];
}

function fieldRow(
  name: string,
  schema: JsonSchema,
  schemas: Schemas,
  required: boolean,
  level: number,
): Html {
  return html`<tr><td class="level-${Math.min(level, DEEPEST_LEVEL)}"><code>${name}</code>${required && REQUIRED}</td><td>${typeLabel(schema)}</td><td>${descriptionAndLimits(schema, schemas)}</td></tr>`;
}

export const REQUIRED = html` <span class="required">required</span>`;

/** The description of a schema and its limits. */
export function descriptionAndLimits(
  schema: JsonSchema,
  schemas: Schemas,
  description = resolved(schema, schemas)['description'],
): Html {
  const limits = limitsOf(schema, schemas);
  return html`${typeof description === 'string' && html`<div>${renderInlineCode(description)}</div>`}${limits.length > 0 && html`<div class="limits">${separated(limits, '; ')}</div>`}`;
}

function limitsOf(schema: JsonSchema, schemas: Schemas): Html[] {
  const own = resolved(schema, schemas);
  const choices = alternatives(own).filter((choice) => choice['type'] !== 'null');
  const items = asSchema(own['items']) ?? asSchema(own['additionalProperties']);
  const limits = [
    ...(choices.length === 1 ? limitsOf(choices[0]!, schemas) : []),
    ...(Array.isArray(own['enum']) ? [html`one of ${separated(own['enum'].map(code), ' ')}`] : []),
    ...range(own['minLength'], own['maxLength'], ' character'),
    ...range(own['minimum'], own['maximum'], ''),
    ...(own['exclusiveMinimum'] === undefined ? [] : [html`more than ${Number(own['exclusiveMinimum'])}`]),
    ...(own['exclusiveMaximum'] === undefined ? [] : [html`less than ${Number(own['exclusiveMaximum'])}`]),
    ...range(own['minItems'], own['maxItems'], ' item'),
    ...range(own['minProperties'], own['maxProperties'], ' field'),
    ...(own['uniqueItems'] === true ? [html`no two alike`] : []),
    ...(own['pattern'] === undefined ? [] : [html`pattern <code>${String(own['pattern'])}</code>`]),
    ...(own['default'] === undefined ? [] : [html`default ${code(own['default'])}`]),
    ...(Array.isArray(own['examples']) && own['examples'].length > 0
      ? [html`for example ${separated(own['examples'].map(code), ', ')}`]
      : []),
  ];
  const ofItems = items === undefined ? [] : limitsOf(items, schemas);
  return ofItems.length === 0 ? limits : [...limits, html`each: ${separated(ofItems, ', ')}`];
}

function range(least: unknown, most: unknown, unit: string): Html[] {
  const units = (count: number): string => (unit === '' || count === 1 ? unit : `${unit}s`);
  if (typeof least === 'number' && typeof most === 'number')
    return [least === most ? html`exactly ${least}${units(least)}` : html`${least} to ${most}${units(most)}`];
  if (typeof least === 'number') return [html`at least ${least}${units(least)}`];
  return typeof most === 'number' ? [html`at most ${most}${units(most)}`] : [];
}

function code(value: unknown): Html {
  return html`<code>${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}</code>`;
}

function separated(parts: Html[], separator: string): Html[] {
  return parts.flatMap((part, index) => (index === 0 ? [part] : [html`${separator}`, part]));
}

function referredName(schema: JsonSchema): string | undefined {
  const reference = schema['$ref'];
  return typeof reference === 'string' && reference.startsWith(SCHEMA_REF_PREFIX)
    ? reference.slice(SCHEMA_REF_PREFIX.length)
    : undefined;
}

function resolved(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const name = referredName(schema);
  return name === undefined ? schema : (schemas[name] ?? {});
}

function alternatives(schema: JsonSchema): JsonSchema[] {
  return (schema['anyOf'] ?? schema['oneOf'] ?? []) as JsonSchema[];
}

function asSchema(part: unknown): JsonSchema | undefined {
  return typeof part === 'object' && part !== null && !Array.isArray(part) ? (part as JsonSchema) : undefined;
}
