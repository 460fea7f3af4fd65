import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import type { Command } from '../command-definition.ts';
import { requireByIdOrName } from '../find-by-id-or-name.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';
import { fieldOptions, readFields } from './resource-fields.ts';

export type Row = Readonly<Record<string, unknown>>;

/** A kind of resource of REST v2, as the command line shows it. The commands follow from this description. */
export interface ResourceDefinition {
  /** The first word of its commands. */
  noun: string;
  plural: string;
  /** Below /v2. */
  path: string;
  /** The query of the list. */
  listQuery?: string;
  /** The name of the list in the response; default: `plural`. */
  listName?: string;
  /** Title and field of each column; fields of objects are joined by dots. */
  columns: Readonly<Record<string, string | ((row: Row) => unknown)>>;
  verbs: readonly Verb[];
  /** Shown in the help of create and update. */
  fieldHelp?: string;
  listSummary?: string;
  removeSummary?: string;
}

const VERBS = ['ls', 'get', 'create', 'update', 'rm'] as const;
export type Verb = (typeof VERBS)[number];

/** The commands of a resource, by name. */
export function resourceCommands(definition: ResourceDefinition): Command[] {
  return definition.verbs.map((verb) => BUILDERS[verb](definition));
}

const BUILDERS: Record<Verb, (definition: ResourceDefinition) => Command> = {
  ls: (definition) =>
    command({
      name: `${definition.noun} ls`,
      summary: definition.listSummary ?? `List the ${definition.plural}.`,
      options: { ...watchOption, ...serverOptions },
      async run(call) {
        const client = await connect(call);
        await repeatWhileWatched(call, async () => {
          const rows = await listResources(client, definition);
          call.output.printTable(
            { [definition.listName ?? definition.plural]: rows },
            rows,
            columnsOf(definition),
            `There are no ${definition.plural} yet.`,
          );
        });
      },
    }),
  get: (definition) =>
    command({
      name: `${definition.noun} get`,
      summary: `Show one ${definition.noun}.`,
      words: { NAME: `The ${definition.noun}, by id or name.` },
      options: { ...watchOption, ...serverOptions },
      async run(call) {
        const client = await connect(call);
        const { id } = await findResource(client, definition, call.words.NAME);
        await repeatWhileWatched(call, async () =>
          call.output.printRecord(await client.get<Row>(pathOf(definition, id))),
        );
      },
    }),
  create: (definition) =>
    command({
      name: `${definition.noun} create`,
      summary: `Create ${withArticle(definition.noun)}.`,
      details: definition.fieldHelp ?? '',
      options: { ...fieldOptions, ...serverOptions },
      async run(call) {
        const client = await connect(call);
        const made = await client.post<Row>(`/v2${definition.path}`, await readFields(call));
        call.output.printRecord(made);
      },
    }),
  update: (definition) =>
    command({
      name: `${definition.noun} update`,
      summary: `Change fields of ${withArticle(definition.noun)}.`,
      details: definition.fieldHelp ?? '',
      words: { NAME: `The ${definition.noun}, by id or name.` },
      options: { ...fieldOptions, ...serverOptions },
      async run(call) {
        const client = await connect(call);
        const fields = await readFields(call);
        const { id } = await findResource(client, definition, call.words.NAME);
        call.output.printRecord(await client.patch<Row>(pathOf(definition, id), fields));
      },
    }),
  rm: (definition) =>
    command({
      name: `${definition.noun} rm`,
      summary: definition.removeSummary ?? `Delete ${withArticle(definition.noun)}.`,
      words: { NAME: `The ${definition.noun}, by id or name.` },
      options: serverOptions,
      async run(call) {
        const client = await connect(call);
        const { id } = await findResource(client, definition, call.words.NAME);
        await client.delete(pathOf(definition, id));
        call.output.printRecord({ id, deleted: true });
      },
    }),
};

function pathOf({ path }: ResourceDefinition, id: string): string {
  return `/v2${path}/${encodeURIComponent(id)}`;
}

function listResources(
  client: ApiClient,
  { path, listQuery, listName, plural }: ResourceDefinition,
): Promise<Row[]> {
  return client.listAll<Row>(`/v2${path}${listQuery ?? ''}`, listName ?? plural);
}

/** One of them, by its id or its unique name. */
async function findResource(
  client: ApiClient,
  definition: ResourceDefinition,
  word: string,
): Promise<{ id: string; name: string }> {
  const rows = (await listResources(client, definition)) as { id: string; name?: string | null }[];
  // What has no name is found by its id alone.
  const all = rows.map(({ id, name }) => ({ id, name: name ?? id }));
  const { noun, plural } = definition;
  return requireByIdOrName(all, word, { noun, plural, listCommand: `berth ${noun} ls` });
}

function columnsOf({ columns }: ResourceDefinition): Column<Row>[] {
  return Object.entries(columns).map(([title, field]) => ({
    title,
    value: typeof field === 'function' ? field : (row) => fieldOf(row, field),
  }));
}

/** `compute.podCount` of a row. */
export function fieldOf(row: Row, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], row);
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}
