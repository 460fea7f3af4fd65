import { after } from 'node:test';
import { serverFixture } from './server-fixture.ts';
import type { ServerFixture } from './server-fixture.ts';

/** A server whose endpoints and pods go before it does: what runs outlives it. */
export function clearedServerFixture(env: Record<string, string> = {}): ServerFixture {
  // Hooks run in the order in which they are named, so this one comes before that of the stage.
  after(async () => {
    if (stage.server === undefined) return;
    const client = stage.server.client();
    const { body: serverless } = await client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless');
    const { body: rented } = await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods');
    for (const { id } of serverless.endpoints) await client.call('DELETE', `/v2/serverless/${id}`);
    for (const { id } of rented.pods) await client.call('DELETE', `/v2/pods/${id}`);
  });
  const stage = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off', ...env });
  return stage;
}
