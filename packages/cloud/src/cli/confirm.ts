import { Failure, UsageError } from './failure.ts';
import type { Input, Writable } from './surroundings.ts';

/** Asks a person, and ends the command unless the answer is yes. */
export async function confirm(
  question: string,
  { stdin, stderr, stdout }: { stdin: () => Input; stderr: Writable; stdout: Writable },
): Promise<void> {
  if (stdout.isTTY !== true || stdin().isTTY !== true)
    throw new UsageError('--yes is needed where nobody can be asked');
  stderr.write(`${question} [y/N] `);
  for await (const answer of stdin()) {
    if (/^\s*y(?:es)?\s*$/i.test(Buffer.from(answer).toString('utf8'))) return;
    break;
  }
  throw new Failure('nothing was removed');
}
