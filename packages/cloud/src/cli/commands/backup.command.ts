import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BackupError, verifyBackup } from '../../resources/backups/verify-backup.ts';
import type { ApiClient } from '../api-client.ts';
import type { OutputStream } from '../cli-context.ts';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { connect } from '../connect.ts';
import { CopyProgress } from '../copy-progress.ts';
import { serverOptions } from '../local-server.ts';
import { printProgress } from '../report-changes.ts';
import { writeLine } from '../terminal-text.ts';

const TAR = 'application/x-tar';

export const backup = command({
  name: 'backup',
  summary: 'Make a backup of the running server.',
  details:
    'The file contains the database, uploaded images and, unless --no-keys is given, the master key ' +
    'and the root key: anyone with this file can read all secrets and use every account. Keep it as safe as ' +
    'the server; its mode is 0600. It is verified before it gets its final name. "berth restore" reads it.',
  words: { FILE: 'Where to write the backup, a tar archive.' },
  options: {
    ...serverOptions,
    volumes: { kind: 'switch', description: 'Include network volumes and the disks of pods.' },
    'no-keys': {
      kind: 'switch',
      description: 'Leave the keys out. To restore, copy master.key to the new data folder yourself.',
    },
    force: { kind: 'switch', description: 'Replace the file if it exists.' },
  },
  async run(call) {
    const file = resolve(call.words.FILE);
    if (existsSync(file) && call.options.force !== true)
      throw new CliError(`${file} exists already; choose another name, or use --force`);
    if (!existsSync(dirname(file))) throw new CliError(`there is no folder ${dirname(file)}`);
    const client = await connect(call);
    let step = 'the server copies its database';
    const { database, keys, volumes, entries } = await printProgress(
      (line) => writeLine(call.stderr, line),
      () => step,
      () => fetchBackup(client, file, call, (next) => (step = next)),
    );
    const bytes = entries.reduce((sum, { size }) => sum + size, 0);
    call.output.printRecord(
      {
        file,
        database: database.kind,
        schema: database.schema,
        keys,
        volumes,
        entries: entries.length,
        bytes,
      },
      ...(keys ? ['It holds the keys of this installation: keep it secret.'] : []),
    );
  },
});

/** Writes the backup and checks it; it gets its name then. */
async function fetchBackup(
  client: ApiClient,
  file: string,
  { options, stderr }: { options: { volumes: boolean; 'no-keys': boolean }; stderr: OutputStream },
  atStep: (step: string) => void,
): Promise<Awaited<ReturnType<typeof verifyBackup>>> {
  const query = new URLSearchParams({ volumes: String(options.volumes), keys: String(!options['no-keys']) });
  const response = await client.send('GET', `/v2/backup?${query}`, undefined, { timeoutMs: 0, accept: TAR });
  if (!response.ok) throw await client.errorFrom(response);
  atStep('the backup is received');
  const progress = new CopyProgress(stderr);
  const unfinished = `${file}.partial`;
  try {
    await pipeline(
      Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]),
      async function* count(pieces: AsyncIterable<Uint8Array>) {
        for await (const piece of pieces) {
          progress.bytes(piece.byteLength);
          yield piece;
        }
      },
      createWriteStream(unfinished, { mode: 0o600, flush: true }),
    );
    progress.finish();
    atStep('the backup is checked');
    const manifest = await verifyBackup(unfinished);
    await rename(unfinished, file);
    return manifest;
  } catch (error) {
    await rm(unfinished, { force: true });
    if (error instanceof BackupError)
      throw new CliError('the backup did not arrive whole; look at the log of the server', {
        cause: error,
      });
    throw error;
  }
}
