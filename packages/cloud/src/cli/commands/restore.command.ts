import { existsSync } from 'node:fs';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { dataFolder, serverOptions } from '../local-server.ts';
import { printProgress } from '../report-changes.ts';
import { writeLine } from '../terminal-text.ts';

export const restore = command({
  name: 'restore',
  summary: 'Restore a backup into a new data folder or database.',
  details:
    'The whole backup is checked first: the checksum of every file, the schema and the database. The ' +
    'data folder must not exist or be empty, and so must the database, unless --replace is given. ' +
    'Start the server afterwards with "berth up" and the same folder. The server of the backup must ' +
    'not run any more: two would run the same jobs.',
  words: { FILE: 'A backup that "berth backup" or the schedule made.' },
  options: {
    data: { ...serverOptions.data, description: 'The data folder to create.' },
    database: {
      kind: 'text',
      value: 'URL',
      description: 'An empty PostgreSQL database, for a backup of PostgreSQL. Default: BERTH_DATABASE_URL.',
    },
    replace: {
      kind: 'switch',
      description:
        'Replace existing data. The old data folder is renamed; tables of the database are dropped.',
    },
  },
  async run({ words, options, env, output, stderr }) {
    if (!existsSync(words.FILE)) throw new CliError(`there is no file ${words.FILE}`);
    const { restoreBackup } = await import('../../app/restore-backup.ts');
    const data = dataFolder(options.data, env);
    const { manifest, movedTo } = await printProgress(
      (line) => writeLine(stderr, line),
      () => 'the backup is checked and restored',
      () =>
        restoreBackup({
          file: words.FILE,
          data,
          database: options.database ?? env['BERTH_DATABASE_URL'] ?? '',
          replace: options.replace === true,
        }),
    );
    output.printRecord(
      {
        data,
        database: manifest.database.kind,
        schema: manifest.database.schema,
        createdAt: manifest.createdAt,
        entries: manifest.entries.length,
        ...(movedTo !== undefined && { before: movedTo }),
      },
      manifest.keys
        ? `Start it with "berth up --data ${data}"${
            manifest.database.kind === 'sqlite'
              ? ''
              : ', and the same database (--database or BERTH_DATABASE_URL)'
          }.`
        : `The backup holds no keys: copy master.key to ${data} before you start it.`,
    );
  },
});
