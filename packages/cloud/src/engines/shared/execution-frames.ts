import { PassThrough, type Duplex, type Readable, type Writable } from 'node:stream';
import type { Execution, TerminalSize } from '../instance.ts';

/**
 * A command that runs at another server, over one connection: frames of a type, the length of the content,
 * and the content. An empty frame of a stream is its end.
 */
const TYPES = ['stdin', 'stdout', 'stderr', 'resize', 'kill', 'exit', 'failure'] as const;
type FrameType = (typeof TYPES)[number];
const HEADER_BYTES = 5;
const NOTHING = Buffer.alloc(0);

function writeFrame(to: Writable, type: FrameType, content: Buffer): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(TYPES.indexOf(type));
  header.writeUInt32BE(content.length, 1);
  to.write(header);
  return content.length === 0 || to.write(content);
}

function readFrames(from: Readable, onFrame: (type: FrameType, content: Buffer) => void): void {
  let rest: Buffer = NOTHING;
  from.on('data', (bytes: Buffer) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32BE(1);
      const type = TYPES[rest.readUInt8()];
      if (rest.length < end) return;
      if (type !== undefined) onFrame(type, rest.subarray(HEADER_BYTES, end));
      rest = rest.subarray(end);
    }
  });
}

/** Sends what a stream gives as frames, no faster than they are taken. */
function sendStream(from: Readable, to: Duplex, type: FrameType): Promise<void> {
  return new Promise((resolve) => {
    from.on('data', (bytes: Buffer) => {
      if (bytes.length > 0 && !writeFrame(to, type, bytes)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    });
    from.once('error', () => from.destroy());
    from.once('close', () => {
      if (to.writable) writeFrame(to, type, NOTHING);
      resolve();
    });
  });
}

/** Connects a command of this machine with the server that asked for it. */
export function serveExecution(execution: Execution, socket: Duplex): void {
  readFrames(socket, (type, content) => {
    if (type === 'stdin' && content.length === 0) execution.stdin.end();
    else if (type === 'stdin') execution.stdin.write(content);
    else if (type === 'resize')
      void execution.resize(JSON.parse(content.toString()) as TerminalSize).catch(() => undefined);
    else if (type === 'kill') execution.kill(content.toString() as NodeJS.Signals);
  });
  execution.stdin.on('error', () => undefined);
  socket.once('close', () => execution.kill('SIGKILL'));
  const output = [
    sendStream(execution.stdout, socket, 'stdout'),
    sendStream(execution.stderr, socket, 'stderr'),
  ];
  void execution.exited.then(async (exit) => {
    await Promise.all(output);
    writeFrame(socket, 'exit', Buffer.from(JSON.stringify(exit)));
    socket.end();
  });
}

/** The command at the other end of the connection. Where that breaks, the command counts as killed. */
export function remoteExecution(socket: Duplex): Execution {
  const stdin = new PassThrough();
  const streams = { stdout: new PassThrough(), stderr: new PassThrough() };
  const exited = Promise.withResolvers<{ exitCode: number; signal: string | null }>();
  readFrames(socket, (type, content) => {
    if (type === 'exit')
      exited.resolve(JSON.parse(content.toString()) as { exitCode: number; signal: string | null });
    if (type !== 'stdout' && type !== 'stderr') return;
    if (content.length === 0) streams[type].end();
    else if (!streams[type].write(content)) {
      socket.pause();
      streams[type].once('drain', () => socket.resume());
    }
  });
  void sendStream(stdin, socket, 'stdin');
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    streams.stdout.end();
    streams.stderr.end();
    exited.resolve({ exitCode: 137, signal: 'SIGKILL' });
  });
  return {
    stdin,
    ...streams,
    exited: exited.promise,
    resize: async (size) => void writeFrame(socket, 'resize', Buffer.from(JSON.stringify(size))),
    kill: (signal = 'SIGTERM') => void writeFrame(socket, 'kill', Buffer.from(signal)),
  };
}
