import { createApp } from '../../cloud/src/app/app.ts';
import type { App } from '../../cloud/src/app/app.ts';
import type { Clock } from '../../cloud/src/support/clock.ts';
import { loadConfig } from '../../cloud/src/support/config/load-config.ts';
import { createLog } from '../../cloud/src/support/log.ts';
import { ROOT_KEY } from './server-process.ts';
import type { TestDatabase } from './test-database.ts';

export interface InProcessApp {
  url: string;
  key: string;
  close(): Promise<void>;
}

/** The whole server in this process, on a real port, with the clock that a test wants. */
export async function startInProcessApp(
  database: TestDatabase,
  clock: Clock,
  env: Record<string, string> = {},
): Promise<InProcessApp> {
  const { config } = await loadConfig({
    argv: ['--port', '0', '--data', database.data],
    env: {
      BERTH_DOCKER: 'off',
      BERTH_GPUS: 'virtual',
      BERTH_ROOT_KEY: ROOT_KEY,
      BERTH_LOG_FORMAT: 'json',
      BERTH_DATABASE_URL: database.url,
      ...env,
    },
  });
  const app: App = await createApp({ config, log: createLog({ level: 'error', format: 'json' }), clock });
  await app.http.listen({ host: '127.0.0.1', port: 0 });
  app.start();
  return { url: app.http.listeningOrigin, key: ROOT_KEY, close: () => app.close() };
}
