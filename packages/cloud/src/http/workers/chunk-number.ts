import { BerthError } from '../../support/errors.ts';

/** The largest value of its database column. */
const MAX_CHUNK_NUMBER = 2 ** 31 - 1;

/** Parses `<lease>~<number>`; undefined without a number, as older workers send it. */
export function parseLeaseAndChunkNumber(held: string): { lease: string; number: number } | undefined {
  const mark = held.indexOf('~');
  if (mark === -1) return undefined;
  const digits = held.slice(mark + 1);
  const number = Number(digits);
  if (!/^[1-9]\d*$/.test(digits) || number > MAX_CHUNK_NUMBER)
    throw new BerthError(
      'malformed',
      `the number of a chunk is a whole number from 1 to ${MAX_CHUNK_NUMBER}`,
    );
  return { lease: held.slice(0, mark), number };
}
