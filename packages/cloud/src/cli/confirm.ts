import { CliError, UsageError } from './cli.errors.ts';
import type { InputStream, OutputStream } from './cli-context.ts';
import { fitToTerminal } from './terminal-text.ts';

/** Asks for confirmation, and ends the command unless the answer is yes. */
export async function confirm(
  question: string,
  { stdin, stderr, stdout }: { stdin: () => InputStream; stderr: OutputStream; stdout: OutputStream },
): Promise<void> {
  if (stdout.isTTY !== true || stdin().isTTY !== true)
    throw new UsageError('--yes is needed without a terminal to ask for confirmation');
  stderr.write(`${fitToTerminal(`${question} [y/N]`, stderr)} `);
  for await (const answer of stdin()) {
    if (/^\s*y(?:es)?\s*$/i.test(Buffer.from(answer).toString('utf8'))) return;
    break;
  }
  throw new CliError('nothing was removed');
}
