import { readFile as readFileOfDisk } from 'node:fs/promises';
import { ConfigError } from './config-error.ts';
import type { Config } from './config.ts';
import { fromEnvironment, type Environment } from './from-environment.ts';
import { fromFile, type ReadFile } from './from-file.ts';
import { fromFlags } from './from-flags.ts';
import type { Knob } from './knob.ts';
import { knobList } from './knobs.ts';
import type { Given } from './source.ts';

export interface ConfigSources {
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
}: ConfigSources): Promise<LoadedConfig> {
  const flags = fromFlags(argv);
  const environment = fromEnvironment(env);
  const file = flags.file ?? environment.file;
  const sources = [flags, environment, ...(file === undefined ? [] : [await fromFile(file, readFile)])];
  const problems = sources.flatMap((source) => source.problems);
  const config = {};
  for (const { path, knob } of knobList) {
    const given = sources.map((source) => source.given.get(path)).find((found) => found !== undefined);
    const value = given === undefined ? knob.default : readValue(knob, given.value);
    if (value === undefined) problems.push(refusal(path, knob, given));
    else put(config, path.split('.'), value);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return { config: config as Config, warnings: environment.warnings };
}

/** Text means the same from everywhere; what is not text can only come from the file. */
function readValue({ kind }: Knob, value: unknown): unknown {
  return typeof value === 'string' && kind.fromText !== undefined
    ? kind.fromText(value)
    : kind.fromFile(value);
}

/** Longer values are cut: the start is enough to find them. */
const SHOWN_CHARACTERS = 80;

function refusal(path: string, { kind, secret }: Knob, given: Given | undefined): string {
  const shown = secret
    ? 'not usable (its value is secret and is not shown)'
    : (JSON.stringify(given?.value) ?? String(given?.value)).slice(0, SHOWN_CHARACTERS);
  return `${path} from ${given?.origin} is ${shown}; allowed: ${kind.allowed}`;
}

function put(target: Record<string, unknown>, [head = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) target[head] = value;
  else put((target[head] ??= {}) as Record<string, unknown>, rest, value);
}
