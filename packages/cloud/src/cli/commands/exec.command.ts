import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import type { CommandCall } from '../command-definition.ts';
import { CommandExit, UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podPath, podArgumentHelp } from '../pods/pod-client.ts';
import { runRemoteCommand } from '../pods/remote-command.ts';
import type { OutputStream } from '../cli-context.ts';

const options = {
  tty: {
    kind: 'switch',
    description:
      'Use a terminal, even if this program has none. Default: if its input and output are a terminal.',
  },
  'no-tty': { kind: 'switch', description: 'Use pipes, even if this program runs in a terminal.' },
  json: {
    kind: 'switch',
    description: 'Collect the output of the command and print it as JSON, with the exit code.',
  },
  ...serverOptions,
} as const;

const definition = {
  summary: 'Run a command in a pod; without one, its shell.',
  details:
    'Input, output and exit code are those of the command. Options of berth come before POD; ' +
    'everything after POD is the command, unchanged.',
  words: { POD: podArgumentHelp, 'COMMAND...': 'The command and its arguments. A -- before it is left out.' },
  options,
};

export const exec = command({ name: 'exec', ...definition, run });
export const podExec = command({ name: 'pod exec', ...definition, run });

type ExecCall = CommandCall<
  { POD: string; COMMAND: string[] },
  { tty: boolean; 'no-tty': boolean; json: boolean; data: string | undefined }
>;

async function run(call: ExecCall): Promise<void> {
  const { words, options: chosen, stdout, stderr } = call;
  if (chosen.tty && chosen['no-tty']) throw new UsageError('--tty and --no-tty exclude each other');
  const client: ApiClient = await connect(call);
  const pod = await findPod(client, words.POD);
  const stdin = call.stdin();
  const tty =
    chosen.tty || (!chosen['no-tty'] && !chosen.json && stdin.isTTY === true && stdout.isTTY === true);
  const [out, err] = [collector(), collector()];
  const conversation = {
    client,
    path: podPath(pod, '/terminal'),
    command: words.COMMAND,
    tty,
    term: call.env['TERM'],
    stdin,
  };
  const ending = await runRemoteCommand({
    ...conversation,
    ...(chosen.json ? { stdout: out, stderr: err } : { stdout, stderr }),
  });
  if (chosen.json) call.output.printRecord({ ...ending, stdout: out.text(), stderr: err.text() });
  throw new CommandExit(ending.exitCode);
}

function collector(): OutputStream & { text(): string } {
  const pieces: Buffer[] = [];
  return {
    write: (piece) => pieces.push(Buffer.from(piece as Uint8Array)),
    text: () => Buffer.concat(pieces).toString('utf8'),
  };
}
