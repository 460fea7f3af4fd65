const HEADER_BYTES = 8;

export interface Frame {
  stream: 'stdout' | 'stderr';
  payload: Buffer;
}

/**
 * Parses the daemon's multiplexed output stream. A frame header is one byte for the stream, three unused
 * bytes and four bytes for the length.
 */
export class FrameParser {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let offset = 0;
    while (bytes.length - offset >= HEADER_BYTES) {
      const end = offset + HEADER_BYTES + bytes.readUInt32BE(offset + 4);
      if (end > bytes.length) break;
      frames.push({
        stream: bytes[offset] === 2 ? 'stderr' : 'stdout',
        payload: bytes.subarray(offset + HEADER_BYTES, end),
      });
      offset = end;
    }
    this.#rest = bytes.subarray(offset);
    return frames;
  }
}
