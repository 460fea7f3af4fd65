import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError, unreadable } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column, Output } from '../output.ts';

const PATH = '/v2/account/ssh-keys';

/** A line of authorized_keys by its parts. */
interface SshKey {
  type: string;
  comment: string;
  line: string;
}

const columns: Column<SshKey>[] = [
  { title: 'TYPE', value: ({ type }) => type },
  { title: 'COMMENT', value: ({ comment }) => comment },
  { title: 'KEY', value: ({ line }) => line.split(' ')[1] },
];

export const sshKeyLs = command({
  name: 'ssh-key ls',
  summary: 'List the SSH keys that may log in to your pods.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    show(call.output, await readKeys(client));
  },
});

export const sshKeyAdd = command({
  name: 'ssh-key add',
  summary: 'Add an SSH key to your account.',
  details: 'Pods accept it from their next start on. Berth needs the public key only.',
  words: { FILE: 'The public key, such as ~/.ssh/id_ed25519.pub; - is the standard input.' },
  options: serverOptions,
  async run(call) {
    const line = (await readPublicKey(call.words.FILE, call.stdin)).trim();
    const client = await connect(call);
    const keys = await readKeys(client);
    show(call.output, keys.includes(line) ? keys : await replaceKeys(client, [...keys, line]));
  },
});

export const sshKeyRm = command({
  name: 'ssh-key rm',
  summary: 'Remove an SSH key from your account.',
  details: 'Running pods accept it until they are restarted.',
  words: { KEY: 'The comment at its end, or the key itself, as "berth ssh-key ls" shows it.' },
  options: serverOptions,
  async run(call) {
    const word = call.words.KEY;
    const client = await connect(call);
    const keys = await readKeys(client);
    const found = keys.filter(
      (line) => line === word || line.split(' ')[1] === word || parse(line).comment === word,
    );
    if (found.length === 0)
      throw new CliError(`there is no SSH key ${JSON.stringify(word)}; "berth ssh-key ls" shows all`);
    if (found.length > 1)
      throw new CliError(
        `${found.length} SSH keys have the comment ${JSON.stringify(word)}; name the key itself`,
      );
    show(
      call.output,
      await replaceKeys(
        client,
        keys.filter((line) => line !== found[0]),
      ),
    );
  },
});

async function readKeys(client: ApiClient): Promise<string[]> {
  return (await client.get<{ keys: string[] }>(PATH)).keys;
}

async function replaceKeys(client: ApiClient, keys: readonly string[]): Promise<string[]> {
  return (await client.put<{ keys: string[] }>(PATH, { keys })).keys;
}

function parse(line: string): SshKey {
  const [type = '', , ...comment] = line.split(' ');
  return { type, comment: comment.join(' '), line };
}

function show(output: Output, keys: readonly string[]): void {
  const rows = keys.map(parse);
  output.printTable({ keys }, rows, columns, 'There is no SSH key yet; "berth ssh-key add FILE" adds one.');
}

async function readPublicKey(file: string, stdin: () => AsyncIterable<Uint8Array | string>): Promise<string> {
  const key = file === '-' ? await text(Readable.from(stdin())) : await readKeyFile(file);
  if (key.includes('PRIVATE KEY'))
    throw new CliError(`${file} is a private key, which stays on your machine; give its .pub file`);
  return key;
}

async function readKeyFile(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(unreadable(file, cause), { cause });
  });
}
