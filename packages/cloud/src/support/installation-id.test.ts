import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { randomIds } from './ids.ts';
import { loadInstallationId } from './installation-id.ts';

test('an installation is identified by its data folder or its shared database', () => {
  const [one, other] = [
    mkdtempSync(join(tmpdir(), 'berth-installation-')),
    mkdtempSync(join(tmpdir(), 'berth-installation-')),
  ];
  const masterKey = Buffer.alloc(32, 1);
  const name = (data: string, database = ''): string =>
    loadInstallationId({ data, database, masterKey }, randomIds);
  assert.equal(name(one), name(one));
  assert.notEqual(name(one), name(other));
  const shared = 'postgres://berth:secret@db.example.com:5432/berth';
  assert.equal(name(one, shared), name(other, shared.replace('berth:secret', 'other:password')));
  assert.notEqual(name(one, shared), name(one, `${shared}2`));
  for (const folder of [one, other]) rmSync(folder, { recursive: true });
});
