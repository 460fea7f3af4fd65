import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A migration that a later version of Berth might have. */
export interface LaterMigration {
  statement: string;
  /** Servers that do not know it may go on, see `Migration`. */
  expandsOnly: boolean;
}

/** Writes this version of Berth to a folder, with one more migration if given. Returns its program. */
export function writeLaterVersion(folder: string, migration: LaterMigration | undefined): string {
  mkdirSync(folder, { recursive: true });
  const copy = 'tar --exclude=node_modules -c packages | tar -x -C "$0"';
  execFileSync('sh', ['-c', copy, folder]);
  for (const name of ['node_modules', 'packages/cloud/node_modules'])
    if (existsSync(name)) symlinkSync(resolve(name), join(folder, name));
  if (migration !== undefined) addMigration(join(folder, 'packages/cloud/src/store/migrations'), migration);
  return join(folder, 'packages/cloud/bin/berth');
}

function addMigration(folder: string, { statement, expandsOnly }: LaterMigration): void {
  const mark = expandsOnly ? 'expandsOnly: true, ' : '';
  const list = join(folder, 'migrations.ts');
  writeFileSync(
    list,
    `${readFileSync(list, 'utf8')}
migrations.push({ name: 'of a later version', ${mark}statements: [${JSON.stringify(statement)}] });
`,
  );
}
