/**
 * A copy for what is kept for long. Small copies by `Buffer.from` share pieces of 64 KB, and each piece stays in
 * memory for as long as one of its copies is kept.
 */
export function unpooledCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
