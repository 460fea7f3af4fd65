import { parseArgumentList, type FlagType } from './argument-list.ts';
import { settingList } from './settings.ts';
import type { ConfigSource } from './config-source.ts';

/** The flag for the configuration file itself. */
const FILE_FLAG = 'config';

/** The flags of `berth up`, with what help says of each. */
export const configFlags: Readonly<Record<string, { value: string; description: string }>> = {
  ...Object.fromEntries(
    settingList
      .filter(({ setting }) => setting.flag)
      .map(({ path, setting }) => [path, { value: path.toUpperCase(), description: setting.description }]),
  ),
  [FILE_FLAG]: {
    value: 'FILE',
    description: 'The configuration file, in YAML. "berth config" prints one with every default.',
  },
};

const kinds: Record<string, FlagType> = Object.fromEntries(
  Object.keys(configFlags).map((flag) => [flag, 'text']),
);

export function configFromFlags(argv: readonly string[]): ConfigSource & { file: string | undefined } {
  const { flags, positionals, problems } = parseArgumentList(argv, kinds);
  const source: ConfigSource = {
    given: new Map(),
    problems: [...problems, ...positionals.map((word) => `unexpected argument ${JSON.stringify(word)}`)],
  };
  for (const { path } of settingList)
    if (typeof flags[path] === 'string') source.given.set(path, { value: flags[path], origin: `--${path}` });
  return { ...source, file: flags[FILE_FLAG] as string | undefined };
}
