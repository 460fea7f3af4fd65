import { readFile } from 'node:fs/promises';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { noSuch } from './find-by-id-or-name.ts';
import type { Environment } from '../support/config/config-from-environment.ts';
import { writePrivateFile } from '../support/private-file.ts';
import { CliError } from './cli.errors.ts';

/** A server that this user has logged in to. */
export interface ServerContext {
  url: string;
  key: string;
}

interface ContextFile {
  current?: string;
  contexts: Record<string, ServerContext>;
}

/** Undefined where the environment names no folder of the user. */
function contextFile(env: Environment): string | undefined {
  const folder = env['XDG_CONFIG_HOME'] || (env['HOME'] ? join(env['HOME'], '.config') : undefined);
  return folder === undefined ? undefined : join(folder, 'berth', 'contexts.json');
}

export async function readContexts(env: Environment): Promise<ContextFile> {
  const file = contextFile(env);
  if (file === undefined) return { contexts: {} };
  try {
    return { contexts: {}, ...(JSON.parse(await readFile(file, 'utf8')) as Partial<ContextFile>) };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} };
    throw new CliError(
      `${file} cannot be read as JSON; "berth login URL" writes a new one once it is removed`,
      {
        cause,
      },
    );
  }
}

/** The file holds keys: only its owner can read it. */
export async function saveContexts(env: Environment, contexts: ContextFile): Promise<string> {
  const file = contextFile(env);
  if (file === undefined) throw new CliError('HOME is not set, so there is no place for the key');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writePrivateFile(file, `${JSON.stringify(contexts, null, 2)}\n`);
  return file;
}

/** The context of this name, or the current one where none is named. */
export async function findContext(
  env: Environment,
  name: string | undefined,
): Promise<(ServerContext & { name: string }) | undefined> {
  const { current, contexts } = await readContexts(env);
  const wanted = name ?? current;
  if (wanted === undefined) return undefined;
  const found = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
  if (found !== undefined) return { ...found, name: wanted };
  const otherwise = '"berth context ls" shows all, "berth login URL" adds one';
  throw noSuch('context', wanted, Object.keys(contexts), otherwise);
}
