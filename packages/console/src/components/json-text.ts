/**
 * What is wrong with a text as JSON, with line and column where the engine tells; undefined if it is right.
 */
export function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    const position = /position (\d+)/.exec(words)?.[1];
    if (position === undefined) return words;
    const before = text.slice(0, Number(position)).split('\n');
    return (
      `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ` +
      `${words.replace(/ in JSON.*$/, '').replace(/ \(line.*$/, '')}`
    );
  }
}

const MAX_SHOWN = 200_000;

/** A value as text for the screen; megabytes are cut. */
export function prettyJson(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'undefined');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… (${text.length} characters in all)` : text;
}
