import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { endpointArgumentHelp, endpointPath, findEndpointForJobs } from '../serverless/endpoint-client.ts';
import { formatLogLine, followLog, readLog } from '../serverless/log-client.ts';
import type { LogLineView } from '../serverless/log-client.ts';
import { logTailOption, parseLogTail } from '../serverless/log-tail.ts';
import { repeatOnEvents, watchEventsOption } from '../watch.ts';
import { eventsPath, showWorkers } from './ps.command.ts';

const words = {
  ENDPOINT: endpointArgumentHelp,
  WORKER: 'The id of the worker; "berth worker ls" lists them.',
};

export const workerLs = command({
  name: 'worker ls',
  summary: 'List the workers of an endpoint, with the phases of their start.',
  details: 'The same as "berth ps ENDPOINT".',
  words: { ENDPOINT: endpointArgumentHelp },
  options: { ...watchEventsOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const { id } = await findEndpointForJobs(client, call.words.ENDPOINT);
    await repeatOnEvents(call, client, eventsPath('endpoint,worker', id), () =>
      showWorkers(call.output, client, call.words.ENDPOINT),
    );
  },
});

export const workerLogs = command({
  name: 'worker logs',
  summary: 'Show the log of a worker, running or ended.',
  details: '"berth logs ENDPOINT" shows those of all workers together, and of one job.',
  words,
  options: {
    follow: { kind: 'switch', short: 'f', description: 'Continue with new lines as they are written.' },
    tail: logTailOption,
    ...serverOptions,
  },
  async run(call) {
    const { words: given, options, output } = call;
    const tail = parseLogTail(options.tail);
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, given.ENDPOINT);
    const path = endpointPath(endpoint, `/workers/${encodeURIComponent(given.WORKER)}/logs?tail=${tail}`);
    const show = (line: LogLineView): void =>
      output.printText(output.isText ? formatLogLine(line) : `${JSON.stringify(line)}\n`);
    if (options.follow)
      for await (const line of followLog(client, path, new AbortController().signal)) show(line);
    else for (const line of await readLog(client, `${path}&follow=false`)) show(line);
  },
});

export const workerStop = command({
  name: 'worker stop',
  summary: 'Stop a worker after it has finished its current jobs.',
  details: 'If the endpoint still needs a worker, another one starts.',
  words,
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, call.words.ENDPOINT);
    const id = call.words.WORKER;
    const path = endpointPath(endpoint, `/workers/${encodeURIComponent(id)}/stop`);
    const response = await client.send('POST', path);
    if (!response.ok) throw await client.errorFrom(response);
    call.output.printRecord({ id, endpoint: endpoint.id, stopping: true });
  },
});
