import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podPath, podArgumentHelp } from '../pods/pod-client.ts';
import { followLog, readLog, formatLogLine } from '../serverless/log-client.ts';
import type { LogLineView } from '../serverless/log-client.ts';
import { logTailOption, parseLogTail } from '../serverless/log-tail.ts';

export const podLogs = command({
  name: 'pod logs',
  summary: 'Show the log of a pod.',
  details:
    'A removed pod can be given by its id, as long as its log is retained. A dot marks messages of ' +
    'Berth about the pod.',
  words: { POD: podArgumentHelp },
  options: {
    follow: {
      kind: 'switch',
      short: 'f',
      description: 'Continue with new lines as they are written, until the pod ends.',
    },
    tail: logTailOption,
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output } = call;
    const tail = parseLogTail(options.tail);
    const client = await connect(call);
    // A removed pod is not in the list, but its log can still be read.
    const missing: unknown[] = [];
    const pod = await findPod(client, words.POD).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error;
      missing.push(error);
      return { id: words.POD };
    });
    const path = podPath(pod, `/logs?tail=${tail}`);
    const show = (line: LogLineView): void =>
      output.printText(output.isText ? formatLogLine(line) : `${JSON.stringify(line)}\n`);
    try {
      if (options.follow)
        for await (const line of followLog(client, path, new AbortController().signal)) show(line);
      else for (const line of await readLog(client, `${path}&follow=false`)) show(line);
    } catch (error) {
      throw missing[0] ?? error;
    }
  },
});
