/**
 * The commands of Berth in a shell script, each as its words after `berth`. Understands what the pages use.
 */
export function berthCommands(script: string): string[][] {
  const lines = script.replaceAll('\\\n', ' ').split('\n');
  return lines.flatMap((line) =>
    [...line.matchAll(/(?:^|[|;&({]|\$\()\s*(?:until |while |if )?(?:npx )?berth(?= |$)/g)].map((found) =>
      firstCommand(line.slice(found.index + found[0].length)),
    ),
  );
}

/** The words up to the end of the command: a pipe, a closing bracket, a redirection or a comment. */
function firstCommand(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (character === "'" || character === '"') {
      const end = closingQuote(text, at);
      word = (word ?? '') + text.slice(at + 1, end);
      at = end;
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (/[|;&)<>]/.test(character) || (character === '#' && word === undefined)) break;
    else word = (word ?? '') + character;
  }
  return word === undefined ? words : [...words, word];
}

/** Quotes inside $( ) belong to the command in it. */
function closingQuote(text: string, start: number): number {
  let depth = 0;
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[start] === '"' && text.startsWith('$(', at)) depth += 1;
    else if (depth > 0 && text[at] === ')') depth -= 1;
    else if (depth === 0 && text[at] === text[start]) return at;
  }
  return text.length;
}
