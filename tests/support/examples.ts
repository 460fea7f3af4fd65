import { readdirSync } from 'node:fs';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freshDatabase } from './databases.ts';
import type { TestDatabase } from './databases.ts';
import { runBerth } from './program.ts';
import type { Ran } from './program.ts';
import { startServer } from './server.ts';
import type { TestServer } from './server.ts';

export const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));

export function exampleNames(): string[] {
  return readdirSync(EXAMPLES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

export interface JobShown {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  workerId?: string;
}

/** A server with workers, and the command line on its machine. All endpoints go before the server does: workers outlive it. */
export interface ExampleStage {
  place: TestDatabase;
  server: TestServer;
  berth<T = Record<string, unknown>>(...args: string[]): Promise<Ran<T>>;
}

export function exampleStage(env: Record<string, string> = {}): ExampleStage {
  const stage = {
    berth: (...args: string[]) => runBerth([...args, '--data', stage.place.data]),
  } as ExampleStage;
  before(async () => {
    stage.place = await freshDatabase('sqlite');
    stage.server = await startServer(stage.place, { BERTH_RATE_LIMITS: 'off', ...env });
  });
  after(async () => {
    const { json } = await stage.berth<{ endpoints: { id: string }[] }>('ps');
    for (const { id } of json.endpoints) await stage.berth('rm', id, '--yes');
    await stage.server.stop();
    await stage.place.drop();
  });
  return stage;
}
