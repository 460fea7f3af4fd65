/**
 * Shares `wanted` places among those who wait: everyone gets one in turn until the places or
 * the waiting are used up. `waiting` says how many each has, counted up to `wanted`. The interfaces
 * let only the account that owns an endpoint submit to it; the queue is ready for others.
 */
export function fairShare(waiting: readonly number[], wanted: number): number[] {
  const shares = waiting.map(() => 0);
  let left = wanted;
  let hungry = waiting.length;
  while (left > 0 && hungry > 0) {
    const each = Math.max(1, Math.floor(left / hungry));
    hungry = 0;
    for (const [index, has] of waiting.entries()) {
      const more = Math.min(each, has - (shares[index] ?? 0), left);
      shares[index] = (shares[index] ?? 0) + more;
      left -= more;
      if ((shares[index] ?? 0) < has) hungry += 1;
    }
  }
  return shares;
}

/** The accounts, which are in order, beginning with the one after the one that was served last. */
export function rotateAfter(accounts: readonly string[], last = ''): string[] {
  return [...accounts.filter((account) => account > last), ...accounts.filter((account) => account <= last)];
}

/** Of accounts in turn, the one that got the last place. */
export function lastServed(accounts: readonly string[], shares: readonly number[]): string {
  return accounts[shares.lastIndexOf(Math.max(...shares))] ?? '';
}
