/** One thing in a tar. */
export interface TarEntry {
  /** With slashes, without one at its end. */
  name: string;
  kind: 'file' | 'folder' | 'link' | 'hard-link' | 'other';
  size: number;
  mode: number;
  /** Milliseconds since 1970. */
  modifiedAt: number;
  /** Where a link leads. */
  target: string;
}

export const BLOCK = 512;

/** Bytes that fill up the last block of a content of this size. */
export function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}
