import { connect } from '../client.ts';
import { command } from '../command.ts';
import { Failure, UsageError } from '../failure.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podPath, podWord } from '../pods/pods.ts';
import { MOST_LINES } from '../serverless/log-followers.ts';
import { followLog, readLog, shownLine } from '../serverless/logs.ts';
import type { LogLine } from '../serverless/logs.ts';
import { readCount } from '../serverless/order.ts';

const DEFAULT_TAIL = 100;

export const podLogs = command({
  name: 'pod logs',
  summary: 'Show what a pod wrote.',
  details:
    'Also of one that was removed, by its id, as long as that is kept. A dot marks what Berth says about it.',
  words: { POD: podWord },
  options: {
    follow: {
      kind: 'switch',
      short: 'f',
      description: 'Go on with what is written from now on, until the pod ends.',
    },
    tail: {
      kind: 'text',
      value: 'N',
      description: `How many of the last lines to begin with, at most ${MOST_LINES}. Default: ${DEFAULT_TAIL}.`,
    },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output } = call;
    const tail = readCount('tail', options.tail, 0) ?? DEFAULT_TAIL;
    if (tail > MOST_LINES) throw new UsageError(`--tail is ${tail}; allowed: at most ${MOST_LINES}`);
    const client = await connect(call);
    // One that was removed is in no list, and has its log.
    const missing: unknown[] = [];
    const pod = await findPod(client, words.POD).catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error;
      missing.push(error);
      return { id: words.POD };
    });
    const path = podPath(pod, `/logs?tail=${tail}`);
    const show = (line: LogLine): void =>
      output.text(output.forPeople ? shownLine(line) : `${JSON.stringify(line)}\n`);
    try {
      if (options.follow)
        for await (const line of followLog(client, path, new AbortController().signal)) show(line);
      else for (const line of await readLog(client, `${path}&follow=false`)) show(line);
    } catch (error) {
      throw missing[0] ?? error;
    }
  },
});
