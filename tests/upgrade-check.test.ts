import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { UpgradeCheck } from '../packages/cloud/src/app/check-upgrade.ts';
import { upgradeAdvice } from '../packages/cloud/src/cli/commands/upgrade.command.ts';
import { migrations } from '../packages/cloud/src/store/migrations/migrations.ts';
import { openDatabase, openStore } from '../packages/cloud/src/store/open-store.ts';
import { raw, row } from '../packages/cloud/src/store/sql.ts';
import { Sealer } from '../packages/cloud/src/support/crypto.ts';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';

const NEWEST = migrations.length;
/** The last step that earlier servers cannot work with. */
const BREAKING = migrations.findLastIndex(({ expandsOnly }) => expandsOnly !== true) + 1;
const names = (from: number): string[] => migrations.slice(from).map(({ name }) => name);

for (const kind of DATABASES)
  describe(`berth upgrade --check, on ${kind}`, () => {
    let fixture: TestDatabase;
    const options = () => ({
      database: fixture.url,
      data: fixture.data,
      poolSize: 1,
      sealer: new Sealer(Buffer.alloc(32, 1)),
      onError: (error: Error): void => assert.fail(error),
    });
    /** Runs a statement on the version that is stored; answers it. */
    const schema = async (statement: string): Promise<unknown> => {
      const database = await openDatabase(options());
      try {
        return (await database.write(() => row<{ version: number }>(raw(statement))))?.version;
      } finally {
        await database.close();
      }
    };
    const setSchema = (version: number): Promise<unknown> =>
      schema(`update schema_version set version = ${version} returning version`);
    const check = () =>
      runBerth<UpgradeCheck>(['upgrade', '--check', '--data', fixture.data], {
        BERTH_DATABASE_URL: fixture.url,
      });

    before(async () => {
      fixture = await createTestDatabase(kind);
      await (await openStore(options())).close();
    });
    after(() => fixture?.drop());

    test('nothing changes where the schema is this one', async () => {
      const { json, code, stderr } = await check();
      assert.equal(code, 0, stderr);
      assert.deepEqual(json, {
        database: kind,
        schema: NEWEST,
        program: NEWEST,
        steps: [],
        keepsEarlierServers: true,
        runningVersions: [],
      });
      assert.match(upgradeAdvice(json), /Nothing changes/);
    });

    test('it says which steps come, and whether earlier servers go on beside them', async () => {
      for (const version of new Set([BREAKING, BREAKING - 1].filter((step) => step < NEWEST))) {
        await setSchema(version);
        const { json } = await check();
        const keepsEarlierServers = version >= BREAKING;
        assert.deepEqual(
          [json.schema, json.steps, json.keepsEarlierServers],
          [version, names(version), keepsEarlierServers],
        );
        const words = keepsEarlierServers ? /earlier servers go on/ : /earlier ones are not ready any more/;
        assert.match(upgradeAdvice(json), words);
        assert.equal(await schema('select version from schema_version'), version, 'nothing was changed');
      }
      const advice = upgradeAdvice({ steps: ['adds a table'], keepsEarlierServers: true });
      assert.match(advice, /earlier servers go on/);
    });

    test('a database of a newer version is refused, with the reason', async () => {
      await setSchema(NEWEST + 1);
      const { code, stderr } = await check();
      assert.equal(code, 1);
      assert.match(stderr, /the database is newer than this version/);
    });
  });
