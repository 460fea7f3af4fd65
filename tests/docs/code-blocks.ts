/** A fenced block of code on a page. */
export interface CodeBlock {
  language: string;
  text: string;
}

const FENCE = /^```(\w*)[^\n]*\n([\s\S]*?)^```$/gm;

/** The blocks of a page, in order. */
export function codeBlocks(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(FENCE)].map(([, language = '', text = '']) => ({ language, text }));
}

/**
 * One shell script that runs a page as a reader would: its shell blocks in their order, in one shell. The
 * blocks of another language are one program, which runs before the last shell block; that one cleans up.
 * `commands` says how a program is read from standard input; a language without one is left out.
 */
export function pageScript(blocks: readonly CodeBlock[], commands: Record<string, string>): string {
  const shell = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
  const programs = Object.entries(commands).flatMap(([language, command]) => {
    const text = blocks.filter((block) => block.language === language).map((block) => block.text);
    return text.length === 0 ? [] : [`${command} <<'END_OF_PROGRAM'\n${text.join('\n')}END_OF_PROGRAM\n`];
  });
  return ['set -euo pipefail\n', ...shell.slice(0, -1), ...programs, ...shell.slice(-1)].join('\n');
}
