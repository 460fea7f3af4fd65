import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../support/config/config-from-environment.ts';
import { settings } from '../support/config/settings.ts';
import type { Options } from './command-definition.ts';
import { CliError } from './cli.errors.ts';

/** Options of commands that talk to the server. */
export const serverOptions = {
  data: {
    kind: 'text',
    value: 'FOLDER',
    description: 'The data folder of the server on this machine, where BERTH_URL is not set.',
  },
  context: {
    kind: 'text',
    value: 'NAME',
    description: 'The server to talk to, by the name that "berth login" gave it.',
  },
} as const satisfies Options;

export const DEFAULT_URL = `http://${settings.host.default}:${settings.port.default}`;

export function dataFolder(option: string | undefined, env: Environment): string {
  return option ?? (env['BERTH_DATA'] || settings.data.default);
}

/** The URL that the server wrote to its data folder at startup. */
export async function localUrl(folder: string): Promise<string | undefined> {
  const path = join(folder, 'server.json');
  const content = await readIfThere(path);
  if (content === undefined) return undefined;
  try {
    const { url } = JSON.parse(content) as { url?: unknown };
    if (typeof url === 'string' && URL.canParse(url)) return url;
  } catch (cause) {
    throw new CliError(`${path} is not readable as JSON; restart Berth, which writes it again`, { cause });
  }
  throw new CliError(`${path} contains no address; restart Berth, which writes it again`);
}

/** The root key that the server keeps for the command line. */
export async function localRootKey(folder: string): Promise<{ key: string; origin: string } | undefined> {
  const origin = join(folder, 'root.key');
  const key = (await readIfThere(origin))?.trim();
  return key === undefined || key === '' ? undefined : { key, origin };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new CliError(
      `${path} cannot be read (${code}); run as the user that runs Berth, or set BERTH_URL and BERTH_API_KEY`,
      { cause },
    );
  }
}
