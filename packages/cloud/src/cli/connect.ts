import type { Environment } from '../support/config/config-from-environment.ts';
import { ApiClient } from './api-client.ts';
import { CliError } from './cli.errors.ts';
import { findContext } from './contexts.ts';
import { DEFAULT_URL, dataFolder, localRootKey, localUrl } from './local-server.ts';

interface ConnectCall {
  options: { data: string | undefined; context?: string | undefined };
  env: Environment;
}

/**
 * Finds the server and the key: the context that is named, or else BERTH_URL with BERTH_API_KEY, or else the
 * context of the last login, or else the server on this machine with its root key.
 */
export async function connect({ options, env }: ConnectCall): Promise<ApiClient> {
  const named = options.context ?? (env['BERTH_CONTEXT'] || undefined);
  const local = options.data !== undefined || env['BERTH_DATA'];
  if (named !== undefined || (!env['BERTH_URL'] && !env['BERTH_API_KEY'] && !local)) {
    const context = await findContext(env, named);
    if (context !== undefined) return new ApiClient({ ...context, keyOrigin: `the context ${context.name}` });
  }
  return connectByEnvironment(options.data, env);
}

async function connectByEnvironment(data: string | undefined, env: Environment): Promise<ApiClient> {
  const folder = dataFolder(data, env);
  const wanted = env['BERTH_URL'] || undefined;
  if (wanted !== undefined) checkUrl('BERTH_URL', wanted);
  if (env['BERTH_API_KEY'])
    return new ApiClient({
      url: wanted ?? (await localUrl(folder)) ?? DEFAULT_URL,
      key: env['BERTH_API_KEY'].trim(),
      keyOrigin: 'BERTH_API_KEY',
    });
  const local = (await localUrl(folder)) ?? DEFAULT_URL;
  // The root key has full access, so it is sent only to the server that wrote it.
  if (wanted !== undefined && new URL(wanted).origin !== new URL(local).origin)
    return new ApiClient({
      url: wanted,
      key: undefined,
      keyOrigin: 'BERTH_URL is set without BERTH_API_KEY',
    });
  const found = env['BERTH_ROOT_KEY']
    ? { key: env['BERTH_ROOT_KEY'].trim(), origin: 'BERTH_ROOT_KEY' }
    : await localRootKey(folder);
  return new ApiClient({
    url: wanted ?? local,
    key: found?.key,
    keyOrigin: found?.origin ?? `there is no root.key in ${folder}`,
  });
}

/** Throws unless it is an address of a web server. */
export function checkUrl(name: string, url: string): void {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new CliError(`${name} is ${JSON.stringify(url)}; allowed: an address such as ${DEFAULT_URL}`);
  // What other clients are given.
  const [api] = /\/(?:v[12]|graphql)\/*$/.exec(url) ?? [];
  if (api !== undefined)
    throw new CliError(
      `${name} is ${JSON.stringify(url)}; leave out ${api}: ${url.slice(0, -api.length)} is the server`,
    );
}
