import { readdirSync } from 'node:fs';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { runBerth } from './berth-command.ts';
import type { CommandResult } from './berth-command.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

export const EXAMPLES_FOLDER = fileURLToPath(new URL('../../../examples/', import.meta.url));

export function exampleNames(): string[] {
  return readdirSync(EXAMPLES_FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

export interface ExampleJobView {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  workerId?: string;
}

/**
 * A server with workers, and the command line on its machine. All endpoints go before the server does:
 * workers outlive it.
 */
export interface ExamplesFixture {
  database: TestDatabase;
  server: ServerProcess;
  berth<T = Record<string, unknown>>(...args: string[]): Promise<CommandResult<T>>;
}

export function examplesFixture(env: Record<string, string> = {}): ExamplesFixture {
  const fixture = {
    berth: (...args: string[]) => runBerth([...args, '--data', fixture.database.data]),
  } as ExamplesFixture;
  before(async () => {
    fixture.database = await createTestDatabase('sqlite');
    fixture.server = await startServerProcess(fixture.database, { BERTH_RATE_LIMITS: 'off', ...env });
  });
  after(async () => {
    const { json } = await fixture.berth<{ endpoints: { id: string }[] }>('ps');
    for (const { id } of json.endpoints) await fixture.berth('rm', id, '--yes');
    await fixture.server.stop();
    await fixture.database.drop();
  });
  return fixture;
}
