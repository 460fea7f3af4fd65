import { systemClock } from '../support/clock.ts';
import { ConfigError } from '../support/config/config-error.ts';
import { didYouMean } from '../support/config/did-you-mean.ts';
import type { Command } from './command-definition.ts';
import { commands } from './commands.ts';
import { CommandExit, UsageError } from './cli.errors.ts';
import { escapeControlCharacters, Output, OUTPUT_FORMATS } from './output.ts';
import type { OutputMode } from './output.ts';
import type { CommonValues } from './parse-command-line.ts';
import { parseCommandLine } from './parse-command-line.ts';
import type { CliContext } from './cli-context.ts';
import { writeLine } from './terminal-text.ts';

/**
 * The program `berth`. Exit codes: 0 for success, 1 for a failure, 2 for invalid arguments or configuration,
 * 124 when the time to wait is over, 130 after Ctrl-C; after `berth exec`, the exit code of the command.
 */
export async function main(argv: readonly string[]): Promise<void> {
  const code = await runCommandLine(argv, {
    env: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: () => process.stdin,
    clock: systemClock,
    onInterrupt: interruptSignal,
    exitOnClosedStdout: watchStdout(),
  });
  // A failed start may have left timers and sockets open, so exit explicitly.
  if (code !== 0) process.exit(code);
}

/**
 * `berth key list | head -1` closes the pipe early. That is not an error: a command exits, a server keeps
 * running.
 */
function watchStdout(): () => void {
  let exits = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (exits) process.exit(0);
  });
  return () => {
    exits = true;
  };
}

function interruptSignal(): AbortSignal {
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  return interrupted.signal;
}

export async function runCommandLine(argv: readonly string[], context: CliContext): Promise<number> {
  try {
    await dispatch(argv, context);
    return 0;
  } catch (error) {
    if (error instanceof CommandExit) return error.code;
    const message = error instanceof Error ? error.message : String(error);
    for (const line of message.split('\n'))
      writeLine(context.stderr, `berth: ${line.split('\t').map(escapeControlCharacters).join('\t')}`);
    return error instanceof UsageError || error instanceof ConfigError ? 2 : 1;
  }
}

async function dispatch(argv: readonly string[], context: CliContext): Promise<void> {
  const [first = '--help', ...others] = argv;
  if (first === '--version' || first === '-v') return void context.stdout.write(`berth ${await version()}\n`);
  if (first === '--help' || first === '-h' || (first === 'help' && others.length === 0))
    return showHelp(context, Object.keys(commands));
  if (first === 'help') return dispatch([...others, '--help'], context);
  if (first.startsWith('-'))
    throw new UsageError(
      `options come after the command, as in "berth key list ${first}"; "berth --help" lists the commands`,
    );
  const group = Object.keys(commands).filter((name) => name.startsWith(`${first} `));
  if (group.length > 0 && (others[0] === '--help' || others[0] === '-h')) return showHelp(context, group);
  const found = find(argv, group);
  const command = await found.load();
  const parsed = parseFor(command, found.rest);
  if (parsed.help) {
    const { commandHelp } = await import('./help.ts');
    context.stdout.write(commandHelp(command));
    return;
  }
  if (command.survivesClosedStdout !== true) context.exitOnClosedStdout();
  await command.run({
    ...context,
    words: parsed.words,
    options: parsed.options,
    output: new Output(context.stdout, await outputFormat(parsed.options, context.env)),
  });
}

async function outputFormat({ json, output }: CommonValues, env: CliContext['env']): Promise<OutputMode> {
  const named = json ? 'json' : (output ?? (env['BERTH_OUTPUT'] || undefined));
  if (named !== undefined && !OUTPUT_FORMATS.some((format) => format === named))
    throw new UsageError(`BERTH_OUTPUT is ${JSON.stringify(named)}; allowed: ${OUTPUT_FORMATS.join(', ')}`);
  const format = (named ?? 'table') as OutputMode['format'];
  return format === 'yaml' ? { format, toYaml: (await import('yaml')).stringify } : { format };
}

/** The command that the first words name, and the arguments after them. */
function find(
  argv: readonly string[],
  group: readonly string[],
): { load: () => Promise<Command>; rest: string[] } {
  const [first = '', second = ''] = argv;
  for (const words of [2, 1]) {
    const typed = argv.slice(0, words).join(' ');
    // Both `ls` and `list` are accepted.
    const name = [typed, typed.replace(/ ls$/, ' list'), typed.replace(/ list$/, ' ls')].find((one) =>
      Object.hasOwn(commands, one),
    );
    const load = name === undefined ? undefined : commands[name];
    if (load !== undefined) return { load, rest: argv.slice(words) };
  }
  if (group.length === 0) {
    const hint = didYouMean(first, firstWords(), '; "berth --help" lists the commands');
    throw new UsageError(`unknown command ${JSON.stringify(first)}${hint}`);
  }
  const known = group.map((name) => `"berth ${name}"`).join(', ');
  if (second === '' || second.startsWith('-'))
    throw new UsageError(`"berth ${first}" needs one more word: ${known}`);
  const typed = `${first} ${second}`;
  const hint = didYouMean(typed, group, `; there is ${known}`);
  throw new UsageError(`unknown command ${JSON.stringify(typed)}${hint}`);
}

function firstWords(): Set<string> {
  return new Set(Object.keys(commands).map((name) => name.split(' ')[0] ?? name));
}

/** For a wrong argument of a known command, the message also names its help. */
function parseFor(command: Command, argv: readonly string[]): ReturnType<typeof parseCommandLine> {
  try {
    return parseCommandLine(command, argv);
  } catch (error) {
    if (error instanceof UsageError)
      throw new UsageError(`${error.message} (see "berth ${command.name} --help")`);
    throw error;
  }
}

async function showHelp({ stdout }: CliContext, names: readonly string[]): Promise<void> {
  const { programHelp } = await import('./help.ts');
  const listed = await Promise.all(
    Object.entries(commands).flatMap(([name, load]) => (names.includes(name) ? [load()] : [])),
  );
  stdout.write(programHelp(listed));
}

async function version(): Promise<string> {
  const { berthVersion } = await import('../support/program-files.ts');
  return berthVersion();
}
