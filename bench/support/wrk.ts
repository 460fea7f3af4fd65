import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from './program.ts';
import { onStage } from './stage.ts';

export interface LoadOptions {
  url: string;
  key?: string;
  body: string;
  connections: number;
  seconds: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

/** Posts the same body over and over, on as many connections as are asked for. */
export function load({ url, key, body, connections, seconds }: LoadOptions): Promise<LoadResult> {
  return onStage(async (stage) => {
    const script = join(stage.folder('wrk'), 'post.lua');
    writeFileSync(script, postScript(body, key));
    const output = await runProgram('wrk', ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '-s', script, '--timeout', '30s', url]);
    const match = /^figures (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(output);
    if (match === null) throw new Error(`wrk said something unexpected:\n${output}`);
    const [requests = 0, microseconds = 0, p50 = 0, p99 = 0, failures = 0] = match.slice(1).map(Number);
    if (failures > 0) throw new Error(`${failures} of ${requests} requests to ${url} failed:\n${output}`);
    return { requests, perSecond: requests / (microseconds / 1e6), p50: p50 / 1000, p99: p99 / 1000 };
  });
}

function postScript(body: string, key: string | undefined): string {
  return `
wrk.method = 'POST'
wrk.body = [==[${body}]==]
wrk.headers['content-type'] = 'application/json'
${key === undefined ? '' : `wrk.headers['authorization'] = 'Bearer ${key}'`}
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format('figures %d %d %d %d %d\\n', summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
`;
}
