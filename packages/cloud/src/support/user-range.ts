/** User ids from `first` to `last`, both included. */
export interface UserRange {
  first: number;
  last: number;
}

/** Ids that no distribution gives to people, services or containers. */
export const DEFAULT_USER_RANGE: UserRange = { first: 1_900_000_000, last: 1_900_065_535 };

/**
 * `200000-265535`; undefined if the text is no range of user ids. Root and `nobody` of 16 and 32 bits are no
 * part of it.
 */
export function parseUserRange(text: string): UserRange | undefined {
  const [, first, last] = /^(\d{1,10})-(\d{1,10})$/.exec(text) ?? [];
  const range = { first: Number(first), last: Number(last) };
  return first !== undefined && range.first > 0 && range.first <= range.last && range.last < 2 ** 32 - 2
    ? range
    : undefined;
}
