import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** Fixed by RFC 6455. */
const HANDSHAKE = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [TEXT, CLOSE, PING, PONG] = [0x1, 0x8, 0x9, 0xa];

/**
 * Answers every text message of a WebSocket. As much of the protocol as short messages need; a real service
 * takes a library.
 */
export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  answer: (message: string) => string,
): void {
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}${HANDSHAKE}`)
    .digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let pending = Buffer.alloc(0);
  socket.on('data', (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    for (let frame = readFrame(pending); frame !== undefined; frame = readFrame(pending)) {
      pending = pending.subarray(frame.length);
      if (frame.kind === TEXT) socket.write(writeFrame(TEXT, Buffer.from(answer(frame.content.toString()))));
      else if (frame.kind === PING) socket.write(writeFrame(PONG, frame.content));
      else if (frame.kind === CLOSE) socket.end(writeFrame(CLOSE, frame.content));
    }
  });
  socket.on('error', () => socket.destroy());
}

/** The first whole frame; what a client sends is always masked. */
function readFrame(bytes: Buffer): { kind: number; content: Buffer; length: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = bytes.readUInt8(1) & 0x7f;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < start + 4) return undefined;
  const size =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const length = start + 4 + size;
  if (bytes.length < length) return undefined;
  const mask = bytes.subarray(start, start + 4);
  const content = Buffer.from(bytes.subarray(start + 4, length)).map(
    (byte, index) => byte ^ (mask[index % 4] ?? 0),
  );
  return { kind: bytes.readUInt8(0) & 0x0f, content: Buffer.from(content), length };
}

function writeFrame(kind: number, content: Buffer): Buffer {
  const head =
    content.length < 126
      ? Buffer.from([0x80 | kind, content.length])
      : Buffer.from([0x80 | kind, 126, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([head, content]);
}
