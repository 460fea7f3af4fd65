import type { WebSocket } from 'ws';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import type { InputStream, OutputStream } from '../cli-context.ts';
import { enterRawMode } from './raw-mode.ts';

export interface RemoteCommand {
  client: ApiClient;
  /** The path of the terminal on the server, without a query. */
  path: string;
  command: readonly string[];
  tty: boolean;
  term: string | undefined;
  stdin: InputStream;
  /** Outputs of the remote command. */
  stdout: OutputStream;
  stderr: OutputStream;
}

export interface RemoteCommandResult {
  exitCode: number;
  signal: string | null;
}

/** Runs a command in a pod or a worker, connected to this program's input and output. */
export async function runRemoteCommand({
  client,
  path,
  command,
  tty,
  term,
  stdin,
  stdout,
  stderr,
}: RemoteCommand): Promise<RemoteCommandResult> {
  const query = new URLSearchParams([
    ...command.map((word): [string, string] => ['cmd', word]),
    ['tty', String(tty)],
  ]);
  if (tty)
    for (const name of ['columns', 'rows'] as const)
      if (isSize(stdout[name])) query.set(name, String(stdout[name]));
  if (tty && term) query.set('term', term);
  const socket = await client.webSocket(`${path}?${query.toString()}`);
  const resize = (): void => {
    if (isSize(stdout.columns) && isSize(stdout.rows))
      sendMessage(socket, { type: 'resize', columns: stdout.columns, rows: stdout.rows });
  };
  const leaveRawMode = tty && stdin.isTTY === true ? enterRawMode(stdin) : undefined;
  if (tty) stdout.on?.('resize', resize);
  try {
    const ended = receiveOutput(socket, { stdout, stderr });
    socket.resume();
    const input = sendInput(socket, stdin);
    // Errors of the input are ignored: the command may have ended by now.
    input.catch(() => undefined);
    return await ended;
  } finally {
    leaveRawMode?.();
    stdout.off?.('resize', resize);
    stdin.destroy?.();
  }
}

/** A terminal without a known size reports 0. */
function isSize(cells: number | undefined): boolean {
  return cells !== undefined && cells > 0;
}

function sendMessage(socket: WebSocket, message: Record<string, unknown>): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}

async function sendInput(socket: WebSocket, stdin: InputStream): Promise<void> {
  for await (const chunk of stdin) {
    if (socket.readyState !== socket.OPEN) return;
    await new Promise<void>((resolve) =>
      socket.send(Buffer.from(chunk as Uint8Array), { binary: true }, () => resolve()),
    );
  }
  sendMessage(socket, { type: 'eof' });
}

function receiveOutput(
  socket: WebSocket,
  outputs: { stdout: OutputStream; stderr: OutputStream },
): Promise<RemoteCommandResult> {
  let stream: keyof typeof outputs = 'stdout';
  let ending: RemoteCommandResult | undefined;
  let failure: string | undefined;
  return new Promise((resolve, reject) => {
    socket.on('message', (data, isBinary) => {
      if (isBinary) return void outputs[stream].write(data as Buffer);
      const message = JSON.parse(String(data)) as {
        type: string;
        stream?: keyof typeof outputs;
        message?: string;
        note?: string;
      } & RemoteCommandResult;
      if (message.type === 'stream') stream = message.stream === 'stderr' ? 'stderr' : 'stdout';
      else if (message.type === 'exit') ending = { exitCode: message.exitCode, signal: message.signal };
      else if (message.type === 'error') failure = message.message;
      else if (message.type === 'open' && message.note !== undefined)
        outputs.stderr.write(`${message.note}\n`);
    });
    socket.on('error', (error) => (failure ??= error.message));
    socket.on('close', (_code, reason) => {
      if (ending !== undefined) resolve(ending);
      else
        reject(
          new CliError(
            'the connection to the command ended before the command did: ' +
              `${failure ?? (String(reason) || 'it was cut off')}`,
          ),
        );
    });
  });
}
