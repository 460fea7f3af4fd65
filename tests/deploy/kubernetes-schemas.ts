import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** As kubeconform names the schemas that it would download. */
export const SCHEMA_LOCATION =
  '{{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}/{{.ResourceKind}}{{.KindSuffix}}.json';

interface Definition {
  properties?: Record<string, unknown>;
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[];
  [member: string]: unknown;
}

/**
 * Writes the JSON schemas of an API server's kinds into a folder for kubeconform, from what the server says of
 * itself at `/openapi/v2`. Properties that it does not know are refused.
 */
export function writeKubernetesSchemas(
  openApi: { definitions: Record<string, Definition> },
  { folder, version }: { folder: string; version: string },
): void {
  const target = join(folder, `v${version}-standalone-strict`);
  mkdirSync(target, { recursive: true });
  const definitions = Object.fromEntries(
    Object.entries(openApi.definitions).map(([name, definition]) => [name, strict(definition)]),
  );
  for (const [name, definition] of Object.entries(openApi.definitions)) {
    const [found, ...others] = definition['x-kubernetes-group-version-kind'] ?? [];
    // Those of many groups are parts, such as DeleteOptions.
    if (found === undefined || others.length > 0) continue;
    const { group, version: apiVersion, kind } = found;
    const suffix = [group.split('.')[0], apiVersion].filter((part) => part !== '').join('-');
    const schema = { $ref: `#/definitions/${name}`, definitions: reachable(name, definitions) };
    writeFileSync(join(target, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema));
  }
}

function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Definition;
  if (schema['format'] === 'int-or-string') return { type: ['string', 'integer'] };
  const { description: _, ...members } = Object.fromEntries(
    Object.entries(schema).map(([name, member]) => [
      name,
      // A property may itself be called `format`, so properties are not taken for schemas.
      name === 'properties' ? mapValues(member as Record<string, unknown>, strict) : strict(member),
    ]),
  );
  return schema.properties !== undefined && schema['additionalProperties'] === undefined
    ? { ...members, additionalProperties: false }
    : members;
}

function mapValues(record: Record<string, unknown>, change: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

/** A definition with all that it refers to. */
function reachable(name: string, definitions: Record<string, unknown>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const visit = (next: string): void => {
    if (next in found) return;
    found[next] = definitions[next];
    for (const [, referred = ''] of JSON.stringify(definitions[next]).matchAll(/"#\/definitions\/([^"]+)"/g))
      visit(referred);
  };
  visit(name);
  return found;
}
