import { MAX_BULK_JOBS, MAX_RUN_BODY_BYTES } from '../../domain/limits.ts';
import { CliError, UsageError } from '../cli.errors.ts';
import type { InputStream } from '../cli-context.ts';
import { readJsonText } from './job-input.ts';

export interface EditedInput {
  id: string;
  input: unknown;
}

/** A request also has brackets and commas around its jobs. */
const MAX_BATCH_BYTES = MAX_RUN_BODY_BYTES - 1024;

/** A JSON merge patch: an object, from the word, `@FILE` or `-`. */
export async function readPatch(
  word: string,
  stdin: () => InputStream,
): Promise<Readonly<Record<string, unknown>>> {
  const [text, origin] = await readJsonText(word, stdin, 'the patch');
  const patch = parse(text, origin);
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch))
    throw new UsageError(
      `${origin} is not a JSON object: a patch names the members of the input to change, such as '{"size": 512}'`,
    );
  return patch as Record<string, unknown>;
}

/** Lines of `{"id": …, "input": …}`, as `berth job export` writes them; a JSON list of them is read too. */
export async function readEditedInputs(file: string, stdin: () => InputStream): Promise<EditedInput[]> {
  const [text, origin] = await readJsonText(file === '-' ? file : `@${file}`, stdin, 'the standard input');
  const entries: [unknown, place: string][] = text.trimStart().startsWith('[')
    ? (parse(text, origin) as unknown[]).map((entry, index) => [entry, `${origin}, entry ${index + 1}`])
    : text.split('\n').flatMap((line, index) => {
        const place = `${origin}, line ${index + 1}`;
        return line.trim() === '' ? [] : [[parse(line, place), place] as [unknown, string]];
      });
  if (entries.length === 0) throw new CliError(`${origin} names no job`);
  return entries.map(([entry, place]) => {
    const { id, input } = (entry ?? {}) as Partial<EditedInput>;
    if (typeof id !== 'string' || input === undefined || input === null)
      throw new UsageError(`${place}: must be {"id": "…", "input": …}, with an input that is not null`);
    return { id, input };
  });
}

/** What one request can carry: bounded in number and in size. */
export function inputBatches(inputs: readonly EditedInput[]): EditedInput[][] {
  const batches: EditedInput[][] = [];
  let bytes = Infinity;
  for (const entry of inputs) {
    const size = Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (bytes + size > MAX_BATCH_BYTES || batches.at(-1)?.length === MAX_BULK_JOBS) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(entry);
    bytes += size;
  }
  return batches;
}

function parse(text: string, origin: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`${origin} is not JSON: ${(cause as Error).message}`, { cause });
  }
}
