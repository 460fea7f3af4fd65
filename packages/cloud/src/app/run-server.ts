import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createApp } from './app.ts';
import type { App } from './app.ts';
import { listeningOrigin } from '../http/server-origin.ts';
import { toListenError } from '../http/listen-errors.ts';
import { releaseStartMemory } from './release-start-memory.ts';
import type { RootKey } from './root-key.ts';
import type { Config } from '../support/config/config.ts';
import { DiskReserve, isDiskFull } from '../support/disk-reserve.ts';
import { createLog } from '../support/log.ts';
import type { Log } from '../support/log.ts';
import { writePrivateFile } from '../support/private-file.ts';

export interface RunServerOptions {
  config: Config;
  warnings: string[];
}

/** A start that takes longer says what it does. */
const SLOW_START_MS = 1_500;

/** Runs the server until SIGTERM or SIGINT. Resolves when it has stopped. */
export async function runServer({ config, warnings }: RunServerOptions): Promise<void> {
  const log = createLog(config.log);
  for (const warning of warnings) log.warn(warning);
  const stop = stopSignal();
  const where = config.database === '' ? 'SQLite' : 'PostgreSQL';
  const waiting = setInterval(
    () => log.info(`starting: opening the database (${where}) and upgrading its schema if needed`),
    SLOW_START_MS,
  );
  const app = await createApp({ config, log }).finally(() => clearInterval(waiting));
  const url = await listen(app, config);
  const serverFile = join(config.data, 'server.json');
  writeServerFile(serverFile, url, config, log);
  app.start();
  const isTerminal = process.stdout.isTTY === true;
  const shown = { ...config, publicUrl: app.publicOrigin(), metricsUrl: app.metricsListener?.url };
  const shownUrl = app.tls === undefined ? url : url.replace(/^http:/, 'https:');
  const signInUrl = isTerminal ? await app.signInUrl() : undefined;
  process.stdout.write(startupMessage(shown, shownUrl, app.rootKey, isTerminal, signInUrl));
  if (isTerminal) app.rootKey.markShown();
  const unreachable = unreachableOrigin(config, app.publicOrigin());
  if (unreachable !== undefined) log.warn(unreachable);

  const stopWaiting = releaseStartMemory();

  const signal = await stop;
  stopWaiting();
  log.info({ signal }, 'stopping: waiting for requests in progress');
  await closeWithTimeout(app, config.stopTimeout * 1000, log);
  rmSync(serverFile, { force: true });
  log.info('stopped');
}

/** How the CLI on this machine finds the server. On a full disk the server runs without. */
function writeServerFile(file: string, url: string, config: Config, log: Log): void {
  const reserve = new DiskReserve(config.data, config.diskReserve);
  try {
    reserve.use(() => writePrivateFile(file, `${JSON.stringify({ url, pid: process.pid })}\n`));
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    log.warn({ err: error }, `${file} could not be written; commands on this machine need BERTH_URL=${url}`);
  }
}

async function listen(app: App, { host, port }: Config): Promise<string> {
  try {
    await app.metricsListener?.listen();
    await app.http.listen({ host, port });
    await app.tls?.listen();
  } catch (cause) {
    throw toListenError(cause, host, port);
  }
  return listeningOrigin(app.http.server);
}

/** The root key is shown on a terminal only: other output is often kept, and read by others. */
export function startupMessage(
  config: Pick<Config, 'publicUrl' | 'v1' | 'data'> & { metricsUrl?: string | undefined },
  url: string,
  rootKey: Pick<RootKey, 'file' | 'unshownKey'>,
  isTerminal: boolean,
  signInUrl?: string,
): string {
  const origin = config.publicUrl === '' ? url : config.publicUrl.replace(/\/+$/, '');
  const lines = [
    `  console   ${signInUrl ?? origin}`,
    `  REST v2   ${origin}/v2        reference at ${origin}/v2/docs`,
    `  REST v1   ${config.v1.enabled ? `${origin}/v1` : 'turned off'}`,
    `  GraphQL   ${origin}/graphql`,
    `  docs      ${origin}/docs`,
    ...(config.metricsUrl === undefined ? [] : [`  metrics   ${config.metricsUrl}`]),
    `  data      ${config.data}`,
  ];
  if (rootKey.unshownKey !== undefined && isTerminal)
    lines.push(
      '',
      `  root key  ${rootKey.unshownKey}`,
      `            also in ${rootKey.file}; it opens everything, keep it to yourself`,
    );
  else if (rootKey.file !== undefined) lines.push(`  root key  in ${rootKey.file}`);
  return `berth is up at ${url}\n${lines.join('\n')}\n`;
}

/** What is wrong with the address that clients are given, where other machines are to reach the server. */
export function unreachableOrigin(
  { host, publicUrl }: Pick<Config, 'host' | 'publicUrl'>,
  origin: string,
): string | undefined {
  const isLocal = new URL(origin).hostname === '127.0.0.1';
  if (publicUrl !== '' || !isLocal || !['0.0.0.0', '::'].includes(host)) return undefined;
  return (
    `other machines may connect, but the addresses that answers name begin with ${origin}; ` +
    'set publicUrl (BERTH_PUBLIC_URL) to where they reach this server'
  );
}

/** Called before anything else, so that a signal during the start is not lost. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
}

/**
 * Waits for running requests; after the timeout their connections are closed, so that the process always
 * ends.
 */
async function closeWithTimeout(app: App, milliseconds: number, log: Log): Promise<void> {
  const timer = setTimeout(() => {
    log.warn('some requests did not end in time and are aborted');
    app
      .destroyConnections()
      .catch((error: unknown) => log.warn({ err: error }, 'some connections could not be closed'));
  }, milliseconds);
  await app.close();
  clearTimeout(timer);
}
