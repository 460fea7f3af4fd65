import { readArguments, type FlagKind } from './flags.ts';
import { knobList } from './knobs.ts';
import type { Source } from './source.ts';

/** The flag for the configuration file itself. */
const FILE_FLAG = 'config';

/** The flags of `berth up`, with what help says of each. */
export const configFlags: Readonly<Record<string, { value: string; description: string }>> = {
  ...Object.fromEntries(
    knobList
      .filter(({ knob }) => knob.flag)
      .map(({ path, knob }) => [path, { value: path.toUpperCase(), description: knob.description }]),
  ),
  [FILE_FLAG]: {
    value: 'FILE',
    description: 'The configuration file, in YAML. "berth config" prints one with every default.',
  },
};

const kinds: Record<string, FlagKind> = Object.fromEntries(
  Object.keys(configFlags).map((flag) => [flag, 'text']),
);

export function fromFlags(argv: readonly string[]): Source & { file: string | undefined } {
  const { flags, words, problems } = readArguments(argv, kinds);
  const source: Source = {
    given: new Map(),
    problems: [...problems, ...words.map((word) => `unexpected argument ${JSON.stringify(word)}`)],
  };
  for (const { path } of knobList)
    if (typeof flags[path] === 'string') source.given.set(path, { value: flags[path], origin: `--${path}` });
  return { ...source, file: flags[FILE_FLAG] as string | undefined };
}
