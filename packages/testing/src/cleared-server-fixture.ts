import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { ApiClient } from './api-client.ts';
import { serverFixture } from './server-fixture.ts';
import type { ServerFixture } from './server-fixture.ts';
import type { DatabaseKind } from './test-database.ts';

/** A server whose endpoints and pods go before it does: what runs outlives it. */
export function clearedServerFixture(
  env: Record<string, string> = {},
  kind: DatabaseKind = 'sqlite',
): ServerFixture {
  // Hooks run in the order in which they are named, so this one comes before that of the fixture.
  after(async () => {
    if (fixture.server === undefined) return;
    try {
      await deleteAll(fixture.server.client());
    } catch (error) {
      // The hooks after one that failed do not run.
      await fixture.server.stop();
      throw error;
    }
  });
  const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', ...env });
  return fixture;
}

async function deleteAll(client: ApiClient): Promise<void> {
  const serverless = await client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless');
  assert.equal(serverless.status, 200, serverless.text);
  const rented = await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods');
  assert.equal(rented.status, 200, rented.text);
  for (const { id } of serverless.body.endpoints) await client.call('DELETE', `/v2/serverless/${id}`);
  for (const { id } of rented.body.pods) await client.call('DELETE', `/v2/pods/${id}`);
}
