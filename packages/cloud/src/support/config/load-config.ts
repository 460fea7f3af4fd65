import { readFile as readFileOfDisk } from 'node:fs/promises';
import { ConfigError } from './config-error.ts';
import type { Config } from './config.ts';
import { configFromEnvironment, type Environment } from './config-from-environment.ts';
import { configFromFile, type ReadFile } from './config-from-file.ts';
import { configFromFlags } from './config-from-flags.ts';
import type { Setting } from './setting.ts';
import { settingList } from './settings.ts';
import type { SourceValue } from './config-source.ts';

export interface LoadConfigOptions {
  /** Flags only, such as `--port 9000`. */
  argv?: readonly string[];
  env?: Environment;
  readFile?: ReadFile;
}

export interface LoadedConfig {
  config: Config;
  /** What was ignored, for the log. */
  warnings: string[];
}

/** A flag wins over a variable, a variable over the file, the file over the default. */
export async function loadConfig({
  argv = [],
  env = {},
  readFile = (path) => readFileOfDisk(path, 'utf8'),
}: LoadConfigOptions): Promise<LoadedConfig> {
  const flags = configFromFlags(argv);
  const environment = configFromEnvironment(env);
  const file = flags.file ?? environment.file;
  const sources = [flags, environment, ...(file === undefined ? [] : [await configFromFile(file, readFile)])];
  const problems = sources.flatMap((source) => source.problems);
  const config = {};
  for (const { path, setting } of settingList) {
    const given = sources.map((source) => source.given.get(path)).find((found) => found !== undefined);
    const value = given === undefined ? setting.default : readValue(setting, given.value);
    if (value === undefined) problems.push(refusal(path, setting, given));
    else put(config, path.split('.'), value);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return { config: config as Config, warnings: environment.warnings };
}

/** Text means the same from everywhere; what is not text can only come from the file. */
function readValue({ type }: Setting, value: unknown): unknown {
  return typeof value === 'string' && type.fromText !== undefined
    ? type.fromText(value)
    : type.fromFile(value);
}

/** Longer values are cut: the start is enough to find them. */
const SHOWN_CHARACTERS = 80;

function refusal(path: string, { type, secret }: Setting, given: SourceValue | undefined): string {
  const shown = secret
    ? 'not usable (its value is secret and is not shown)'
    : (JSON.stringify(given?.value) ?? String(given?.value)).slice(0, SHOWN_CHARACTERS);
  return `${path} from ${given?.origin} is ${shown}; allowed: ${type.allowed}`;
}

function put(target: Record<string, unknown>, [head = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[head] = value;
  else put((target[head] ??= {}) as Record<string, unknown>, rest, value);
}
