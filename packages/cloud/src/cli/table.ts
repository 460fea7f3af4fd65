export interface TableLayout {
  /** The columns of the terminal; wider cells are cut. Undefined: nothing is cut. */
  width?: number | undefined;
  colours: boolean;
}

const GAP = '  ';
/** A column is not cut below this. */
const MIN_WIDTH = 8;

/** Aligned columns under their titles. On a narrow terminal, columns at the end are left out. */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { width, colours }: TableLayout,
): string[] {
  const natural = titles.map((title, column) =>
    Math.max(length(title), ...rows.map((row) => length(row[column] ?? ''))),
  );
  // Someone copies the ids from there, and the id of a GPU has spaces.
  const isFirstWhole = titles[0] === 'ID' || rows.every(([first = '']) => !first.includes(' '));
  const widths = width === undefined ? natural : fitInto(natural, width, isFirstWhole);
  const line = (cells: readonly string[], style: (cell: string) => string): string =>
    cells
      .slice(0, widths.length)
      .map((cell, column) => {
        const shown = cut(cell, widths[column] ?? 0);
        const space = ' '.repeat(Math.max(0, (widths[column] ?? 0) - length(shown)));
        return (colours ? style(shown) : shown) + (column === widths.length - 1 ? '' : space);
      })
      .join(GAP)
      .trimEnd();
  return [line(titles, bold), ...rows.map((row) => line(row, colourOf))];
}

/**
 * As many columns as fit, the first at least. Takes from the widest column first, so that states stay whole,
 * and if possible nothing from the first.
 */
function fitInto(natural: readonly number[], width: number, isFirstWhole: boolean): number[] {
  const first = natural[0] ?? 0;
  const isWhole = isFirstWhole && first + GAP.length + MIN_WIDTH <= width;
  const widths = isWhole ? [0, ...natural.slice(1)] : [...natural];
  const room = isWhole ? width - first : width;
  const narrowest = (columns: readonly number[]): number =>
    columns.reduce((sum, one) => sum + Math.min(one, MIN_WIDTH), GAP.length * (columns.length - 1));
  while (widths.length > 1 && narrowest(widths) > room) widths.pop();
  const gaps = GAP.length * (widths.length - 1);
  for (let over = widths.reduce((sum, one) => sum + one, gaps) - room; over > 0; over -= 1) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= MIN_WIDTH) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  if (isWhole) widths[0] = first;
  return widths;
}

function cut(cell: string, width: number): string {
  const characters = [...cell];
  return characters.length <= width ? cell : `${characters.slice(0, width - 1).join('')}…`;
}

function length(text: string): number {
  return [...text].length;
}

const bold = (text: string): string => `\u001b[1m${text}\u001b[0m`;
const GREEN = 32;
const YELLOW = 33;
const RED = 31;

/** States have the colour of what they mean; everything else has none. */
const STATE_COLOURS: Readonly<Record<string, number>> = {
  COMPLETED: GREEN,
  RUNNING: GREEN,
  IDLE: GREEN,
  active: GREEN,
  delivered: GREEN,
  IN_QUEUE: YELLOW,
  IN_PROGRESS: YELLOW,
  INITIALIZING: YELLOW,
  THROTTLED: YELLOW,
  pending: YELLOW,
  FAILED: RED,
  TIMED_OUT: RED,
  UNHEALTHY: RED,
  ERROR: RED,
  failed: RED,
  disabled: RED,
};

function colourOf(cell: string): string {
  const colour = STATE_COLOURS[cell];
  return colour === undefined ? cell : `\u001b[${colour}m${cell}\u001b[0m`;
}
