import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BackupError, verifyBackup } from '../../resources/backups/verify-backup.ts';
import { connect } from '../connect.ts';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

const TAR = 'application/x-tar';

export const backup = command({
  name: 'backup',
  summary: 'Make a backup of the running server.',
  details:
    'The file contains the database, uploaded images and, unless --no-keys is given, the master key ' +
    'and the root key: whoever has it can read all secrets and use every account. Keep it as safe as ' +
    'the server; its mode is 0600. It is checked before it gets its name. "berth restore" reads it.',
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
    const client = await connect(call);
    const query = new URLSearchParams({
      volumes: String(call.options.volumes === true),
      keys: String(call.options['no-keys'] !== true),
    });
    const response = await client.send('GET', `/v2/backup?${query}`, undefined, {
      timeoutMs: 0,
      accept: TAR,
    });
    if (!response.ok) throw await client.errorFrom(response);
    const unfinished = `${file}.partial`;
    try {
      await pipeline(
        Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]),
        createWriteStream(unfinished, { mode: 0o600, flush: true }),
      );
      const { database, keys, volumes, entries } = await verifyBackup(unfinished);
      await rename(unfinished, file);
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
    } catch (error) {
      await rm(unfinished, { force: true });
      if (error instanceof BackupError)
        throw new CliError('the backup did not arrive whole; look at the log of the server', {
          cause: error,
        });
      throw error;
    }
  },
});
