import type { UpgradeCheck } from '../../app/check-upgrade.ts';
import { CliError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { dataFolder, serverOptions } from '../local-server.ts';

export const upgrade = command({
  name: 'upgrade',
  summary: 'Check what this version would change in a database.',
  details:
    'A new version upgrades the database when its first server starts; no other command is needed. ' +
    'With --check, this shows what would change. It changes nothing itself, and servers may keep ' +
    'running.',
  words: {},
  options: {
    check: { kind: 'switch', description: 'Compare the database with this version.' },
    data: serverOptions.data,
    database: {
      kind: 'text',
      value: 'URL',
      description: 'The PostgreSQL database. Default: BERTH_DATABASE_URL, or SQLite in the data folder.',
    },
  },
  async run({ options, env, output }) {
    if (options.check !== true)
      throw new CliError(
        'use "berth upgrade --check"; the upgrade itself happens when the new version is started with "berth up"',
      );
    const { checkUpgrade } = await import('../../app/check-upgrade.ts');
    const found = await checkUpgrade(
      options.database ?? env['BERTH_DATABASE_URL'] ?? '',
      dataFolder(options.data, env),
    );
    if (found.schema > found.program)
      throw new CliError(
        `the database is newer than this version (its schema is ${found.schema}, this one knows ` +
          `${found.program}); use the version that wrote it`,
      );
    output.printRecord({ ...found }, upgradeAdvice(found));
  },
});

/** What to do, for people at a terminal. */
export function upgradeAdvice({
  steps,
  keepsEarlierServers,
}: Pick<UpgradeCheck, 'steps' | 'keepsEarlierServers'>): string {
  if (steps.length === 0) return 'Nothing changes: this version and the running ones can be mixed.';
  return keepsEarlierServers
    ? 'Make a backup first. The change only adds to the schema: earlier servers go on beside this version.'
    : 'Make a backup first. When the first server of this version has started, earlier ones are not ready any more.';
}
