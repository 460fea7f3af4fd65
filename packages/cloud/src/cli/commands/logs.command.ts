import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { CliError, UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import {
  endpointPath,
  endpointArgumentHelp,
  findEndpointForJobs,
  jobPath,
} from '../serverless/endpoint-client.ts';
import type { EndpointForJobs } from '../serverless/endpoint-client.ts';
import { followWorkerLogs } from '../serverless/follow-worker-logs.ts';
import { followLog, ignoreNotFound, readLog, formatLogLine } from '../serverless/log-client.ts';
import type { LogLineView } from '../serverless/log-client.ts';
import { writeLine } from '../terminal-text.ts';
import { levelFilter, LOG_LEVELS } from '../serverless/log-levels.ts';
import { logTailOption, parseLogTail } from '../serverless/log-tail.ts';
import { listWorkers } from '../serverless/worker-client.ts';
/** How many recent jobs are searched for workers that have ended. */
const RECENT_JOBS = 100;
const ENDED_SHOWN = 3;

export const logs = command({
  name: 'logs',
  summary: 'Show the logs of the workers of an endpoint.',
  details:
    'Shows the logs of all workers, of one worker or of one job. If no worker is running, shows those ' +
    'that ended last. A dot marks messages of Berth about a worker.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: {
    worker: { kind: 'text', value: 'ID', description: 'Only the log of this worker, which may have ended.' },
    job: { kind: 'text', value: 'ID', description: 'Only the log of this job.' },
    level: {
      kind: 'text',
      choices: LOG_LEVELS,
      description:
        'Leave out lines of worker SDKs below this level; other lines are always shown. Default: info.',
    },
    follow: { kind: 'switch', short: 'f', description: 'Continue with new lines as they are written.' },
    tail: { ...logTailOption, description: `Of each worker: ${logTailOption.description}` },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output } = call;
    const { worker, job, follow } = options;
    if (worker !== undefined && job !== undefined)
      throw new UsageError('--worker and --job exclude each other');
    const tail = parseLogTail(options.tail);
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, words.ENDPOINT);
    const shows = levelFilter(options.level ?? 'info');
    let folded = 0;
    const show = (line: LogLineView, from?: string): void => {
      if (output.isText && !shows(line)) {
        folded += 1;
        return;
      }
      output.printText(
        output.isText
          ? formatLogLine(line, from)
          : `${JSON.stringify({ ...(from !== undefined && { worker: from }), ...line })}\n`,
      );
    };
    const reportFolded = (): void => {
      if (folded > 0)
        call.stderr.write(`(${folded} lines of the SDK are left out; --level debug shows them)\n`);
    };
    const forever = new AbortController().signal;

    if (worker === undefined && job === undefined) {
      if (follow) {
        const { workers, reason } = await listWorkers(client, endpoint);
        if (workers.length === 0)
          writeLine(
            call.stderr,
            escapeControlCharacters(`waiting for a worker: ${reason ?? 'none is running'}`),
          );
        return followWorkerLogs(client, endpoint, tail, show, forever);
      }
      for (const { line, from } of await readAll(client, endpoint, tail)) show(line, from);
      return reportFolded();
    }
    if (job !== undefined && !follow) {
      const { logs: lines } = await client.get<{ logs: LogLineView[] }>(
        jobPath(endpoint, `logs/${encodeURIComponent(job)}`),
      );
      for (const line of lines.slice(Math.max(0, lines.length - tail))) show(line);
      return reportFolded();
    }
    const path =
      job !== undefined
        ? jobPath(endpoint, `logs/${encodeURIComponent(job)}`)
        : endpointPath(endpoint, `/workers/${encodeURIComponent(worker ?? '')}/logs?tail=${tail}`);
    if (follow) for await (const line of followLog(client, path, forever)) show(line);
    else for (const line of await readLog(client, `${path}&follow=false`)) show(line);
    reportFolded();
  },
});

/** Merges the logs of several workers, ordered by time. */
async function readAll(
  client: ApiClient,
  endpoint: EndpointForJobs,
  tail: number,
): Promise<{ line: LogLineView; from: string }[]> {
  const { workers: present, reason } = await listWorkers(client, endpoint);
  const running = present.map(({ id }) => id);
  const workers = running.length > 0 ? running : await endedWorkers(client, endpoint);
  if (workers.length === 0)
    throw new CliError(
      `no worker of ${endpoint.name} is running: ${reason ?? 'none did a job lately; a request starts one'}`,
    );
  const logOf = (worker: string): Promise<LogLineView[]> =>
    readLog(client, endpointPath(endpoint, `/workers/${worker}/logs?tail=${tail}&follow=false`)).catch(
      ignoreNotFound([]),
    );
  const found = await Promise.all(
    workers.map(async (from) => (await logOf(from)).map((line) => ({ line, from }))),
  );
  return found.flat().sort((a, b) => (a.line.ts < b.line.ts ? -1 : a.line.ts > b.line.ts ? 1 : 0));
}

/** Of one that crashed at its start, the log says why. */
async function endedWorkers(client: ApiClient, endpoint: EndpointForJobs): Promise<string[]> {
  const answer = await client.send('GET', endpointPath(endpoint, '/workers?ended=true'));
  const { ended } = answer.ok ? ((await answer.json()) as { ended?: { id: string }[] }) : {};
  if (ended !== undefined) return ended.slice(0, ENDED_SHOWN).map(({ id }) => id);
  // An older server. A load balancing endpoint has no jobs: its paths go to its workers.
  return endpoint.type === 'LOAD_BALANCER' ? [] : recentWorkers(client, endpoint);
}

async function recentWorkers(client: ApiClient, endpoint: Pick<EndpointForJobs, 'id'>): Promise<string[]> {
  const { requests } = await client.get<{ requests: { workerId?: string }[] }>(
    jobPath(endpoint, `requests?limit=${RECENT_JOBS}`),
  );
  return [...new Set(requests.flatMap(({ workerId }) => workerId ?? []))].slice(0, ENDED_SHOWN);
}
