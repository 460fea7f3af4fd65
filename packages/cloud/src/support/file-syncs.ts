/** Node has four threads for files, and the database needs one at any time. */
const MAX_AT_ONCE = 2;

let running = 0;
const waiting: (() => void)[] = [];

/**
 * Syncs a file or a folder that a client has sent, a few at a time: if uploads kept every thread of the pool
 * waiting for the disk, no job could be accepted.
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
