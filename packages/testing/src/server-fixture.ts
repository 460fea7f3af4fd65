import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { createApiClient } from './api-client.ts';
import type { ApiClient } from './api-client.ts';
import { validatingClient, loadOpenApiContract } from './openapi-contract.ts';
import type { OpenApiContract } from './openapi-contract.ts';
import { createTestDatabase } from './test-database.ts';
import type { DatabaseKind, TestDatabase } from './test-database.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

/** A running server with nothing in it yet. Its parts are there once the tests run. */
export interface ServerFixture {
  database: TestDatabase;
  server: ServerProcess;
  contract: OpenApiContract;
  /** Holds the root key. */
  operator: ApiClient;
  /** A client whose answers are checked against the published documents. */
  client(key: string | undefined): ApiClient;
  /** A new account with its first key. */
  createAccount(name: string): Promise<TestAccount>;
  /** Stops the server and starts it again at the same address; `meanwhile` runs in between. */
  restart(meanwhile?: () => Promise<void> | void): Promise<void>;
}

export interface TestAccount extends ApiClient {
  id: string;
  key: string;
}

/** Sets a server up for the tests of a suite. It must not have met a defect by their end. */
export function serverFixture(kind: DatabaseKind, env: Record<string, string> = {}): ServerFixture {
  const fixture = {} as ServerFixture;
  before(async () => {
    fixture.database = await createTestDatabase(kind);
    fixture.server = await startServerProcess(fixture.database, env);
    fixture.contract = await loadOpenApiContract(fixture.server.client());
    fixture.client = (key) => validatingClient(createApiClient(fixture.server.url, key), fixture.contract);
    fixture.operator = fixture.client(fixture.server.key);
    fixture.createAccount = (name) => createAccount(fixture, name);
    fixture.restart = async (meanwhile) => {
      const { port } = new URL(fixture.server.url);
      await fixture.server.stop();
      await meanwhile?.();
      fixture.server = await startServerProcess(fixture.database, env, ['--port', port]);
    };
  });
  after(async () => {
    await fixture.server?.stop();
    await fixture.database?.drop();
    if (fixture.server !== undefined)
      assert.deepEqual(
        parseLogLines(fixture.server).filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      );
  });
  return fixture;
}

async function createAccount({ operator, client }: ServerFixture, name: string): Promise<TestAccount> {
  const { status, body } = await operator.call<{ id: string; key: string }>('POST', '/v2/accounts', { name });
  assert.equal(status, 201);
  return { ...client(body.key), id: body.id, key: body.key };
}

/** The audit log of an account, newest first. */
export async function listAuditLog(client: ApiClient): Promise<Record<string, unknown>[]> {
  const { status, body } = await client.call<{ entries: Record<string, unknown>[] }>(
    'GET',
    '/v2/account/audit-log?limit=1000',
  );
  assert.equal(status, 200);
  return body.entries;
}

export function parseLogLines(server: ServerProcess): Record<string, unknown>[] {
  return server
    .log()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
