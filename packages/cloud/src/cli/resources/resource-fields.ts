import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { UsageError, unreadable } from '../cli.errors.ts';
import type { CliContext } from '../cli-context.ts';
import type { Options } from '../command-definition.ts';

/** How the fields of a resource are given. */
export const fieldOptions = {
  set: {
    kind: 'list',
    value: 'FIELD=VALUE',
    description:
      'A field, such as name=web or workers.max=3. The value is read as JSON if it is valid JSON, else as text; @FILE ' +
      'reads it from a file, @- from the standard input. May be repeated.',
  },
  file: {
    kind: 'text',
    value: 'FILE',
    description: 'The fields as a JSON or YAML file; - is the standard input. --set takes precedence.',
  },
} as const satisfies Options;

type FieldCall = Pick<CliContext, 'stdin'> & { options: { set: string[]; file: string | undefined } };

/** The body of a request from --file and --set. */
export async function readFields(call: FieldCall): Promise<Record<string, unknown>> {
  const { set, file } = call.options;
  if (set.length === 0 && file === undefined) throw new UsageError('give fields with --set or --file');
  const fields = file === undefined ? {} : await parseFile(file, call);
  for (const entry of set) {
    const at = entry.indexOf('=');
    if (at < 1) throw new UsageError(`--set is ${JSON.stringify(entry)}; allowed: FIELD=VALUE`);
    const path = entry.slice(0, at).split('.');
    const given = entry.slice(at + 1);
    assign(
      fields,
      path,
      given.startsWith('@') ? await readContent(given.slice(1), call) : parseValue(path, given),
    );
  }
  return fields;
}

async function parseFile(file: string, call: FieldCall): Promise<Record<string, unknown>> {
  const { parse } = await import('yaml');
  const value: unknown = parse(await readContent(file, call));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`${file} must hold an object with the fields`);
  return value as Record<string, unknown>;
}

async function readContent(file: string, { stdin }: FieldCall): Promise<string> {
  if (file === '-') return (await text(Readable.from(stdin()))).replace(/\n$/, '');
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new UsageError(unreadable(file, cause), { cause });
  }
}

/** Text even where it looks like a number: the value of a secret is often one. */
const TEXT_FIELDS = new Set(['name', 'value', 'description', 'username', 'password']);

/**
 * Numbers, true, false, null, lists and objects are JSON; anything else is text, and so is every variable.
 */
function parseValue([first = '', ...rest]: readonly string[], given: string): unknown {
  if (rest.length === 0 ? TEXT_FIELDS.has(first) && given !== 'null' : first === 'env') return given;
  try {
    return JSON.parse(given) as unknown;
  } catch {
    return given;
  }
}

function assign(fields: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) {
    fields[first] = value;
    return;
  }
  const inner = fields[first];
  const next = typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {};
  fields[first] = next;
  assign(next, rest, value);
}
