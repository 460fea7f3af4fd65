/**
 * Everybody waits while SQLite works: what may be much is done in pieces of this many rows, and others have
 * their turn in between.
 */
const BATCH_ROWS = 2_000;

/**
 * Repeats work that removes rows, so many at a time or a few more, until there are no more. Answers how many
 * there were.
 */
export async function deleteInBatches(remove: (most: number) => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const some = await remove(BATCH_ROWS);
    removed += some;
    if (some < BATCH_ROWS) return removed;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
