import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { ApiClient } from '../api-client.ts';
import { CliError, UsageError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { checkUrl } from '../connect.ts';
import { findContext, readContexts, saveContexts } from '../contexts.ts';
import type { Column } from '../output.ts';
import { readSecretLine } from '../read-secret-line.ts';

export const login = command({
  name: 'login',
  summary: 'Save a server and a key, and use them for later commands.',
  details:
    'The key is prompted for, or read from the standard input, and checked before it is saved in ' +
    "contexts.json of the user's configuration folder, readable by the user only. BERTH_URL and " +
    'BERTH_API_KEY take precedence.',
  words: { URL: 'The address of the server, such as https://berth.example.' },
  options: {
    name: {
      kind: 'text',
      value: 'NAME',
      description: 'The name of the context, for --context. Default: the host name.',
    },
  },
  async run(call) {
    checkUrl('URL', call.words.URL);
    const url = call.words.URL.replace(/\/+$/, '');
    const input = call.stdin();
    const key = (
      input.isTTY === true ? await readSecretLine('API key: ', call) : await text(Readable.from(input))
    ).trim();
    if (key === '') throw new UsageError('a key is needed: type it, or send it to the standard input');
    const account = await new ApiClient({ url, key, keyOrigin: 'the login' }).get<{
      id: string;
      name: string;
    }>('/v2/account');
    const name = call.options.name ?? new URL(url).hostname;
    const { contexts } = await readContexts(call.env);
    const file = await saveContexts(call.env, {
      current: name,
      contexts: { ...contexts, [name]: { url, key } },
    });
    call.output.printRecord({ context: name, url, account: account.name }, `Kept in ${file}.`);
  },
});

interface Row {
  name: string;
  url: string;
  current: boolean;
}
const columns: Column<Row>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'URL', value: ({ url }) => url },
  { title: 'CURRENT', value: ({ current }) => current },
];

export const contextLs = command({
  name: 'context ls',
  summary: 'List the servers that you have logged in to.',
  async run(call) {
    const { current, contexts } = await readContexts(call.env);
    const rows = Object.entries(contexts).map(([name, { url }]) => ({
      name,
      url,
      current: name === current,
    }));
    call.output.printTable(
      { contexts: rows },
      rows,
      columns,
      'There is no context yet; "berth login URL" adds one.',
    );
  },
});

export const contextUse = command({
  name: 'context use',
  summary: 'Switch to another server.',
  words: { 'NAME?': 'The context; without a name, the server on this machine.' },
  async run(call) {
    const { contexts } = await readContexts(call.env);
    const { NAME: name } = call.words;
    if (name !== undefined) await findContext(call.env, name);
    await saveContexts(call.env, { ...(name !== undefined && { current: name }), contexts });
    call.output.printRecord({ context: name ?? null });
  },
});

export const contextRm = command({
  name: 'context rm',
  summary: 'Forget a server and its key.',
  words: { NAME: 'The context.' },
  async run(call) {
    const { current, contexts } = await readContexts(call.env);
    const { NAME: name } = call.words;
    if (!Object.hasOwn(contexts, name)) throw new CliError(`there is no context ${JSON.stringify(name)}`);
    const { [name]: _, ...rest } = contexts;
    await saveContexts(call.env, {
      ...(current !== name && current !== undefined && { current }),
      contexts: rest,
    });
    call.output.printRecord({ context: name, deleted: true });
  },
});
