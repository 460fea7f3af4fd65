/** One thing in a tar. */
export interface TarEntry {
  /** With slashes, without one at its end. */
  name: string;
  type: 'file' | 'folder' | 'link' | 'hard-link' | 'other';
  size: number;
  mode: number;
  /** Milliseconds since 1970. */
  modifiedAt: number;
  /** Where a link leads. */
  target: string;
}

export const TAR_BLOCK_BYTES = 512;

/** Bytes that fill up the last block of a content of this size. */
export function paddingBytes(size: number): number {
  return (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}
