/**
 * The line of a log that tells best why a program ended. Python ends with the exception;
 * Node ends with its version, after the stack and, before that, the error.
 */
export function tellingLine(lines: readonly string[]): string {
  const spoken = lines.map((line) => line.trim()).filter((line) => line !== '' && !/^Node\.js v\d/.test(line) && !/^at .*[:)]/.test(line) && line !== '}');
  return spoken.findLast((line) => /^(Uncaught )?[\w.]*(Error|Exception|Exit|Interrupt)\b/.test(line)) ?? spoken.at(-1) ?? '';
}
