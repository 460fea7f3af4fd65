import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { waitFor } from './wait-for.ts';

export interface TerminalClient {
  opened: { command: string[]; tty: boolean; note?: string };
  type(bytes: string | Buffer): void;
  sendControl(message: Record<string, unknown>): void;
  /** Resolves when this is in its output. */
  waitForOutput(text: string): Promise<unknown>;
  /** Types again and again until it shows. */
  typeUntilOutput(bytes: string, text: string): Promise<unknown>;
  stdout(): Buffer;
  stderr(): Buffer;
  /** Bytes that have come. */
  received(): number;
  pause(): void;
  resume(): void;
  /** Goes away without a word. */
  terminate(): void;
  ended: Promise<{
    code: number;
    exit: { type: string; exitCode: number; signal: string | null } | undefined;
  }>;
}

/** Speaks the protocol of docs/terminal.md. */
export async function openTerminal(
  url: string,
  headers: Record<string, string> = {},
  protocols: string[] = [],
): Promise<TerminalClient> {
  const socket = new WebSocket(url, protocols, { headers });
  const output: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  let stream: 'stdout' | 'stderr' = 'stdout';
  let exit: { type: string; exitCode: number; signal: string | null } | undefined;
  const { promise: opened, resolve } = Promise.withResolvers<TerminalClient['opened']>();
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return void output[stream].push(data);
    const message = JSON.parse(String(data)) as { type: string; stream?: 'stdout' | 'stderr' };
    if (message.type === 'open') resolve(message as never);
    if (message.type === 'stream') stream = message.stream ?? 'stdout';
    if (message.type === 'exit') exit = message as never;
  });
  const ended = once(socket, 'close').then(([code]) => ({ code: code as number, exit }));
  const refused = once(socket, 'unexpected-response').then(([, answer]) =>
    Promise.reject(new Error(`refused with ${(answer as IncomingMessage).statusCode}`)),
  );
  refused.catch(() => undefined);
  const text = (): string => Buffer.concat([...output.stdout, ...output.stderr]).toString();
  const shows = (wanted: string): Promise<unknown> =>
    waitFor(`the terminal shows ${wanted}`, async () => text().includes(wanted)).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; it shows ${JSON.stringify(text())}`);
    });
  return {
    opened: await Promise.race([opened, refused]),
    type: (bytes) => socket.send(Buffer.from(bytes as string)),
    sendControl: (message) => socket.send(JSON.stringify(message)),
    waitForOutput: shows,
    typeUntilOutput: (bytes, wanted) =>
      waitFor(`the terminal shows ${wanted}`, async () => {
        socket.send(Buffer.from(bytes));
        await new Promise((next) => setTimeout(next, 100));
        return text().includes(wanted);
      }),
    stdout: () => Buffer.concat(output.stdout),
    stderr: () => Buffer.concat(output.stderr),
    received: () => output.stdout.reduce((sum, chunk) => sum + chunk.length, 0),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    terminate: () => socket.terminate(),
    ended,
  };
}

/**
 * The answer to one that is not let in; whoever is let in after all goes away again, and that is a failure.
 */
export async function openRefusedTerminal(
  url: string,
  headers: Record<string, string> = {},
  protocols: string[] = [],
): Promise<{ status: number; detail: string }> {
  const socket = new WebSocket(url, protocols, { headers });
  const {
    promise: refused,
    resolve,
    reject,
  } = Promise.withResolvers<[{ destroy(): void }, IncomingMessage]>();
  socket.once('unexpected-response', (request, answer) => resolve([request, answer]));
  socket.once('open', () => {
    socket.terminate();
    reject(new Error('the terminal opened'));
  });
  socket.once('error', reject);
  const [request, answer] = await refused;
  const text = (await Array.fromAsync(answer as AsyncIterable<Buffer>)).join('');
  request.destroy();
  const { detail = '', errors = [] } = JSON.parse(text) as { detail?: string; errors?: string[] };
  return { status: answer.statusCode ?? 0, detail: [detail, ...errors].join('; ') };
}
