/** The candidate closest to a mistyped word; undefined if none is close. */
export function closestMatch(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const candidate of candidates) {
    const distance = spellings(candidate).reduce(
      (least, spelling) => Math.min(least, editDistance(word.toLowerCase(), spelling)),
      Infinity,
    );
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return bestDistance <= closeEnough(word) ? best : undefined;
}

/** `; did you mean X?`, or `otherwise` if nothing is close. */
export function didYouMean(word: string, candidates: Iterable<string>, otherwise = ''): string {
  const found = closestMatch(word, candidates);
  return found === undefined ? otherwise : `; did you mean ${found}?`;
}

/** A setting is often written without its section: `allowPrivate` for `webhooks.allowPrivate`. */
function spellings(candidate: string): string[] {
  const whole = candidate.toLowerCase();
  return [whole, whole.slice(whole.lastIndexOf('.') + 1)];
}

/** One typo in a short word, more in a longer one. */
function closeEnough(word: string): number {
  return Math.max(1, Math.floor(word.length / 2.5));
}

/** Insertions, deletions, replacements and swaps of neighbours, each counted as one. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      row.push(least);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
