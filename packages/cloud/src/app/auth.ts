import { Authenticator } from '../auth/authenticator.ts';
import { OpenAccesses } from '../auth/open-access.ts';
import { PodTokens } from '../auth/pod-tokens.ts';
import { Sessions } from '../auth/sessions.ts';
import { S3Credentials } from '../auth/s3-credentials.ts';
import { WorkerTokens } from '../auth/worker-tokens.ts';
import type { AppContext } from './app-context.ts';
import type { Storage } from './storage.ts';

const SAVE_LAST_USED_INTERVAL_MS = 30_000;

/** Who may do what: API keys, S3 keys, and the tokens of workers and pods. */
export interface Auth {
  authenticator: Authenticator;
  /** Who is signed in to the console. */
  sessions: Sessions;
  s3Credentials: S3Credentials;
  podTokens: PodTokens;
  workerTokens: WorkerTokens;
  /** What is open now and ends with its key. */
  openAccesses: OpenAccesses;
  /** Saves at intervals when keys were last used. */
  start(): void;
  close(): Promise<void>;
}

export function createAuth({ log, clock, events }: AppContext, { context, masterKey }: Storage): Auth {
  const podTokens = new PodTokens(masterKey);
  const sessions = new Sessions(context);
  const authenticator = new Authenticator(context, podTokens, sessions);
  const s3Credentials = new S3Credentials(context);
  const openAccesses = new OpenAccesses({ clock, events });
  const saveLastUsed = async (): Promise<void> => {
    await Promise.all([authenticator.saveLastUsed(), s3Credentials.saveLastUsed(), sessions.saveLastUsed()]);
  };
  let timer: NodeJS.Timeout | undefined;
  return {
    authenticator,
    sessions,
    s3Credentials,
    podTokens,
    workerTokens: new WorkerTokens(masterKey),
    openAccesses,
    start: () => {
      timer = setInterval(() => {
        saveLastUsed().catch((error: unknown) =>
          log.warn({ err: error }, 'the times at which keys were last used could not be saved'),
        );
      }, SAVE_LAST_USED_INTERVAL_MS).unref();
    },
    close: async () => {
      clearInterval(timer);
      openAccesses.close();
      await saveLastUsed();
    },
  };
}
