import type { Output } from './output.ts';
import type { CliContext } from './cli-context.ts';

/** An option of a command. Every command also has --json, --output and --help. */
export interface Option {
  /** text: one value. list: may be repeated. switch: no value. */
  kind: 'text' | 'list' | 'switch';
  description: string;
  /** The name of the value in the help: `ID`. */
  value?: string;
  choices?: readonly string[];
  required?: true;
  /** The short form, one letter: `f` for `-f`. */
  short?: string;
}
export type Options = Readonly<Record<string, Option>>;

/**
 * The words after the command's name, in order, with what each means. `NAME` must be given,
 * `NAME?` may be left out, `NAME*` takes any number of words, and `NAME...` takes all that follows as it
 * stands, options too.
 */
export type Positionals = Readonly<Record<string, string>>;

type Chosen<O extends Option> = O extends { choices: readonly (infer C)[] } ? C : string;
type OptionValue<O extends Option> = O['kind'] extends 'switch'
  ? boolean
  : O['kind'] extends 'list'
    ? Chosen<O>[]
    : O extends { required: true }
      ? Chosen<O>
      : Chosen<O> | undefined;
export type OptionValues<O extends Options> = { [N in keyof O]: OptionValue<O[N]> } & { json: boolean };

type PositionalName<W> = W extends `${infer Name}?` | `${infer Name}*` | `${infer Name}...` ? Name : W;
type PositionalValue<W> = W extends `${string}?`
  ? string | undefined
  : W extends `${string}...` | `${string}*`
    ? string[]
    : string;
export type PositionalValues<W extends Positionals> = {
  [N in keyof W as PositionalName<N> & string]: PositionalValue<N>;
};

/** What a command's code receives. */
export interface CommandCall<W, O> extends CliContext {
  words: W;
  options: O;
  output: Output;
}

export interface Command {
  /** What is typed after `berth`: `key create`. */
  name: string;
  /** One line for the list of commands. */
  summary: string;
  /** More text for the help. */
  details?: string;
  words: Positionals;
  options: Options;
  /** A server keeps running when its output is closed; other commands exit. */
  survivesClosedStdout?: true;
  run(call: CommandCall<unknown, unknown>): Promise<void>;
}

/** Loads a command when it is needed. */
export type CommandLoader = () => Promise<Command>;

/** Ties the words and options of a command to the types that its code sees. */
export function command<const W extends Positionals, const O extends Options>(
  definition: Omit<Command, 'words' | 'options' | 'run'> & {
    words?: W;
    options?: O;
    run(call: CommandCall<PositionalValues<W>, OptionValues<O>>): Promise<void>;
  },
): Command {
  return { words: {}, options: {}, ...definition };
}
