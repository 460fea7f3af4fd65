import { readFile } from 'node:fs/promises';
import { RawJson } from '../api-client.ts';
import { CliError, UsageError, unreadable } from '../cli.errors.ts';
import type { InputStream } from '../cli-context.ts';

/**
 * The body of a job: `{"input": …}` as it is, any other value as the input itself. From the word,
 * from a file, or from the standard input. Numbers keep the digits that were written.
 */
export async function readJobInput(word: string, stdin: () => InputStream): Promise<RawJson> {
  const [text, origin] = await readJsonText(word, stdin, 'the job');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(
      `${origin} is not JSON: ${(cause as Error).message}; a job is written as '{"input": {"name": ` +
        `"world"}}', @FILE or - for the standard input`,
      { cause },
    );
  }
  return new RawJson(
    typeof value === 'object' && value !== null && 'input' in value ? text : `{"input":${text}}`,
  );
}

/** The word itself, or what `@FILE` or `-` stands for; `what` names the word in messages. */
export async function readJsonText(
  word: string,
  stdin: () => InputStream,
  what: string,
): Promise<[text: string, origin: string]> {
  if (word === '-') {
    const parts: Uint8Array[] = [];
    for await (const part of stdin()) parts.push(Buffer.from(part));
    return [Buffer.concat(parts).toString('utf8'), 'the standard input'];
  }
  if (!word.startsWith('@')) return [word, what];
  const file = word.slice(1);
  try {
    return [await readFile(file, 'utf8'), file];
  } catch (cause) {
    throw new CliError(unreadable(file, cause), { cause });
  }
}
