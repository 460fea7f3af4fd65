import type { Socket } from 'node:net';

/** As much as Node reads at a time. */
const READ_BYTES = 64 * 1024;

/** What the last read brought, of whichever connection: each is dealt with before the next. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

type OnRead = (length: number, buffer: Buffer) => boolean;

/** What Node's `onread` sets on a connection, where it still does. */
interface SocketInternals {
  useUserBuffer(buffer: Buffer): void;
  setBuffer(buffer: Buffer): void;
  setOnRead(onRead: OnRead): void;
}

/**
 * Gives what arrives on an accepted connection to `onBytes`, which has read or copied it when it
 * returns. Node would put every piece into 64 kB of new memory, which is a third of what a request
 * costs on the fast lane. It can read into one buffer (`onread`), but offers that to connections
 * that a program opens and not to those that a server accepts: what it sets for the ones is set
 * here for the others. False where Node is made otherwise; then all comes as events, as ever.
 */
export function useSharedReadBuffer(socket: Socket, onBytes: (bytes: Buffer) => void): boolean {
  const inside = socketInternals(socket);
  if (inside === undefined) return false;
  inside.setBuffer(readBuffer);
  inside.setOnRead((length, buffer) => {
    onBytes(buffer.subarray(0, length));
    return true;
  });
  inside.useUserBuffer(readBuffer);
  return true;
}

/** Such a connection is for others now: what arrives comes as events, each with memory of its own. */
export function stopSharedReadBuffer(socket: Socket): void {
  socketInternals(socket)?.setOnRead((length, buffer) =>
    socket.push(Buffer.from(buffer.subarray(0, length))),
  );
}

function socketInternals(socket: Socket): SocketInternals | undefined {
  const { _handle: handle } = socket as Socket & {
    _handle?: { useUserBuffer?(buffer: Buffer): void } | null;
  };
  const symbols = Object.getOwnPropertySymbols(socket);
  const buffer = symbols.find(({ description }) => description === 'kBuffer');
  const onRead = symbols.find(({ description }) => description === 'kBufferCb');
  if (typeof handle?.useUserBuffer !== 'function' || buffer === undefined || onRead === undefined)
    return undefined;
  return {
    useUserBuffer: (bytes) => handle.useUserBuffer?.(bytes),
    setBuffer: (bytes) => Reflect.set(socket, buffer, bytes),
    setOnRead: (listener) => Reflect.set(socket, onRead, listener),
  };
}
