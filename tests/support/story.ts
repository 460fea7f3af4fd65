import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { clientOf } from './client.ts';
import type { Client } from './client.ts';
import { checked, contractOf } from './contract.ts';
import type { Contract } from './contract.ts';
import { freshDatabase } from './databases.ts';
import type { DatabaseKind, TestDatabase } from './databases.ts';
import { startServer } from './server.ts';
import type { TestServer } from './server.ts';

/** A running server with nothing in it yet. Its parts are there once the tests run. */
export interface Stage {
  database: TestDatabase;
  server: TestServer;
  contract: Contract;
  /** Holds the root key. */
  operator: Client;
  /** A client whose answers are checked against the published documents. */
  client(key: string | undefined): Client;
  /** A new account with its first key. */
  account(name: string): Promise<TestAccount>;
}

export interface TestAccount extends Client {
  id: string;
  key: string;
}

/** Sets a server up for the tests of a suite. It must not have met a defect by their end. */
export function stageOn(kind: DatabaseKind, env: Record<string, string> = {}): Stage {
  const stage = {} as Stage;
  before(async () => {
    stage.database = await freshDatabase(kind);
    stage.server = await startServer(stage.database, env);
    stage.contract = await contractOf(stage.server.client());
    stage.client = (key) => checked(clientOf(stage.server.url, key), stage.contract);
    stage.operator = stage.client(stage.server.key);
    stage.account = (name) => newAccount(stage, name);
  });
  after(async () => {
    await stage.server?.stop();
    await stage.database?.drop();
    if (stage.server !== undefined)
      assert.deepEqual(
        logLines(stage.server).filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      );
  });
  return stage;
}

async function newAccount({ operator, client }: Stage, name: string): Promise<TestAccount> {
  const { status, body } = await operator.call<{ id: string; key: string }>('POST', '/v2/accounts', { name });
  assert.equal(status, 201);
  return { ...client(body.key), id: body.id, key: body.key };
}

/** The audit log of an account, newest first. */
export async function auditLog(client: Client): Promise<Record<string, unknown>[]> {
  const { status, body } = await client.call<{ entries: Record<string, unknown>[] }>(
    'GET',
    '/v2/account/audit-log?limit=1000',
  );
  assert.equal(status, 200);
  return body.entries;
}

export function logLines(server: TestServer): Record<string, unknown>[] {
  return server
    .log()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
