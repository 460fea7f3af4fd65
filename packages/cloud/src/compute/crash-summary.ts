/**
 * The line of a log that tells best why a program ended. Python ends with the exception;
 * Node ends with its version, after the stack and, before that, the error.
 */
export function crashSummary(lines: readonly string[]): string {
  const spoken = lines
    .flatMap((line) => messageOf(line).split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^Node\.js v\d/.test(line) && !/^at .*[:)]/.test(line) && line !== '}');
  return (
    spoken.findLast((line) => /^(Uncaught )?[\w.]*(Error|Exception|Exit|Interrupt)\b/.test(line)) ??
    spoken.at(-1) ??
    ''
  );
}

/** The public worker SDKs write what they say as JSON: `{"requestId": null, "message": "...", "level": "ERROR"}`. */
function messageOf(line: string): string {
  if (!line.startsWith('{"requestId":')) return line;
  try {
    const { message } = JSON.parse(line) as { message?: unknown };
    return typeof message === 'string' ? message : line;
  } catch {
    // Cut off, or not of the SDK after all.
    return line;
  }
}
