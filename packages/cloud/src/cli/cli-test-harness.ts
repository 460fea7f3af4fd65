import { ManualClock } from '../support/clock.ts';
import { runCommandLine } from './main.ts';

export interface CliResult {
  code: number;
  out: string;
  err: string;
}

/** Runs a command line in this process and captures its output. */
export async function runBerth(
  argv: readonly string[],
  {
    env = {},
    terminal = false,
    columns,
    input = '',
    interrupted,
    onWrite,
  }: {
    env?: Record<string, string>;
    terminal?: boolean;
    /** The width of the terminal. */
    columns?: number;
    input?: string;
    /** Ctrl-C. */
    interrupted?: AbortSignal;
    /** Gets what is written to either stream, in order. */
    onWrite?: (text: string) => void;
  } = {},
): Promise<CliResult> {
  const ran: CliResult = { code: 0, out: '', err: '' };
  const write = (stream: 'out' | 'err') => (text: string) => {
    ran[stream] += text;
    onWrite?.(text);
  };
  const stream = { isTTY: terminal, ...(columns !== undefined && { columns }) };
  ran.code = await runCommandLine(argv, {
    // Tests read lists as JSON, unless they look at what a person sees.
    env: { ...(!terminal && { BERTH_OUTPUT: 'json' }), ...env },
    stdout: { ...stream, write: write('out') },
    stderr: { ...stream, write: write('err') },
    stdin: () =>
      Object.assign(ReadableStream.from(input === '' ? [] : [Buffer.from(input)]), { isTTY: terminal }),
    clock: new ManualClock(),
    ...(interrupted !== undefined && { onInterrupt: () => interrupted }),
    exitOnClosedStdout: () => undefined,
  });
  return ran;
}
