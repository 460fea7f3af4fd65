/** Node has four threads for files, and the database needs one at any time. */
const MAX_AT_ONCE = 2;

let running = 0;
const waiting: (() => void)[] = [];

/**
 * Syncs a file or a folder that a client has sent. A few at a time: where every thread waits for the disk
 * with somebody's upload, no job is accepted.
 */
export async function syncInTurn(file: { sync(): Promise<void> }): Promise<void> {
  if (running === MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    await file.sync();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
