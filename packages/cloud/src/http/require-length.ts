/**
 * If the file shrinks while it is read, the connection is closed: the next response must not be read as the
 * rest of this one.
 */
export async function* requireLength(
  content: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array> {
  let left = length;
  for await (const piece of content) {
    left -= piece.length;
    yield piece;
  }
  if (left > 0) throw new Error(`the file became ${left} bytes shorter while it was read`);
}
