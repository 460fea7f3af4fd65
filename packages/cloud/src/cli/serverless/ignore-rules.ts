/**
 * Which files of a folder stay behind, by the patterns of a .gitignore: one to a line, `#` for a
 * comment, `!` takes back, a slash at the end means folders, a slash before that ties the pattern
 * to the top. Later patterns go over earlier ones. What is in a folder that stays behind stays
 * behind with it.
 */
export class IgnoreRules {
  readonly #patterns: Pattern[];

  constructor(text: string) {
    this.#patterns = text.split(/\r?\n/).flatMap(readPattern);
  }

  /** Of a path below the folder, with slashes. */
  ignores(path: string, isFolder: boolean): boolean {
    const last = this.#patterns.findLast(
      ({ expression, foldersOnly }) => (isFolder || !foldersOnly) && expression.test(path),
    );
    return last !== undefined && !last.negated;
  }
}

interface Pattern {
  expression: RegExp;
  foldersOnly: boolean;
  negated: boolean;
}

function readPattern(line: string): Pattern[] {
  // Spaces at the end count only behind a backslash.
  const trimmed = line.replace(/(?<!\\)(?:\\\\)*\s+$/, (spaces) => spaces.trimEnd());
  if (trimmed === '' || trimmed.startsWith('#')) return [];
  const takesBack = trimmed.startsWith('!');
  const written = takesBack ? trimmed.slice(1) : trimmed;
  const foldersOnly = written.endsWith('/');
  const body = foldersOnly ? written.slice(0, -1) : written;
  const glob = body.replace(/^\//, '');
  if (glob === '') return [];
  const start = body.includes('/') ? '^' : '^(?:.*/)?';
  try {
    return [
      { expression: new RegExp(`${start}${expressionOf(glob)}$`, 's'), foldersOnly, negated: takesBack },
    ];
  } catch {
    // `[z-a]` is a range that no character is in.
    return [];
  }
}

/** In this order: what stands first is what it means. */
const GLOB_TOKENS: readonly [RegExp, (found: string) => string][] = [
  [/^\*\*\/(?:\*\*\/)*/y, () => '(?:.*/)?'],
  [/\/\*\*(?:\/\*\*)*\//y, () => '/(?:.*/)?'],
  [/\/\*\*$/y, () => '/.+'],
  [/\*+/y, () => '[^/]*'],
  [/\?/y, () => '[^/]'],
  [/\[[!^]?\]?[^\]]*\]/y, (found) => `(?!/)${characterClass(found)}`],
  [/\\./y, (found) => escaped(found.slice(1))],
  [/./y, escaped],
];

function expressionOf(glob: string): string {
  let expression = '';
  for (let at = 0; at < glob.length; ) {
    for (const [part, meaning] of GLOB_TOKENS) {
      part.lastIndex = at;
      const [found] = part.exec(glob) ?? [];
      if (found === undefined) continue;
      expression += meaning(found);
      at += found.length;
      break;
    }
  }
  return expression;
}

function characterClass(found: string): string {
  const negated = /^\[[!^]/.test(found);
  const members = found.slice(negated ? 2 : 1, -1).replaceAll(/[\\[\]^]/g, '\\$&');
  return `[${negated ? '^' : ''}${members}]`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
