import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import pg from 'pg';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { DATABASES, type TestDatabase } from '../packages/testing/src/test-database.ts';

const SECRET = 'wJalrXUtnFEMI-K7MDENG';

/** All requests as they are stored. */
async function storedRequests({ kind, data, url }: TestDatabase): Promise<string> {
  if (kind === 'sqlite')
    return ['berth.db', 'berth.db-wal']
      .map((name) => join(data, name))
      .map((file) => (existsSync(file) ? readFileSync(file, 'latin1') : ''))
      .join('');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return JSON.stringify((await client.query('select * from job_requests')).rows);
  } finally {
    await client.end();
  }
}

for (const kind of DATABASES)
  describe(`the S3 credentials of a job, on ${kind}`, () => {
    const fixture = serverFixture(kind);

    test('are sealed where the job is stored, and its worker gets them', async () => {
      const account = await fixture.createAccount('ann');
      const jobs = await createQueueEndpoint(fixture.server.url, account.key, {});
      const s3Config = {
        accessId: 'id',
        accessSecret: SECRET,
        bucketName: 'b',
        endpointUrl: 'https://s3.example',
      };
      await jobs.run({ marker: 'stored-input' }, { s3Config });
      const stored = await storedRequests(fixture.database);
      assert.ok(stored.includes('stored-input'));
      assert.ok(!stored.includes(SECRET));
      const worker = jobs.worker('w-1');
      const taken = (await worker.take()) as unknown as { s3Config: unknown };
      assert.deepEqual(taken.s3Config, s3Config);
      worker.close();
    });
  });
