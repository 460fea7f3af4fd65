import { Authenticator } from '../auth/authenticator.ts';
import { PodTokens } from '../auth/pod-tokens.ts';
import { WorkerTokens } from '../auth/worker-tokens.ts';
import { S3Keys } from '../resources/keys/s3-keys.ts';
import type { AppContext } from './app-context.ts';
import type { Storage } from './storage.ts';

const SAVE_LAST_USED_INTERVAL_MS = 30_000;

/** Who may do what: API keys, S3 keys, and the tokens of workers and pods. */
export interface Auth {
  authenticator: Authenticator;
  s3Keys: S3Keys;
  podTokens: PodTokens;
  workerTokens: WorkerTokens;
  /** Saves at intervals when keys were last used. */
  start(): void;
  close(): Promise<void>;
}

export function createAuth({ log, events }: AppContext, { context, masterKey }: Storage): Auth {
  const podTokens = new PodTokens(masterKey);
  const authenticator = new Authenticator(context, podTokens);
  const s3Keys = new S3Keys(context, () => events.publish('keys.changed', { source: 'request' }));
  events.subscribe('keys.changed', () => {
    authenticator.invalidateCache();
    s3Keys.invalidateCache();
  });
  const saveLastUsed = async (): Promise<void> => {
    await Promise.all([authenticator.saveLastUsed(), s3Keys.saveLastUsed()]);
  };
  let timer: NodeJS.Timeout | undefined;
  return {
    authenticator,
    s3Keys,
    podTokens,
    workerTokens: new WorkerTokens(masterKey),
    start: () => {
      timer = setInterval(() => {
        saveLastUsed().catch((error: unknown) =>
          log.warn({ err: error }, 'the times at which keys were last used could not be saved'),
        );
      }, SAVE_LAST_USED_INTERVAL_MS).unref();
    },
    close: async () => {
      clearInterval(timer);
      await saveLastUsed();
    },
  };
}
