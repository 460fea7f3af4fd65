import { request } from 'node:http';

/** What a worker says of itself: 200 is ready, 204 is still starting, anything else or nothing is unhealthy. */
export type WorkerHealth = 'ready' | 'starting' | 'unhealthy';

/** What may not stand in a path and its query. A percent sign may, where it escapes something already. */
const NOT_IN_A_PATH = /%(?![0-9a-f]{2})|[^a-z0-9\-._~!$&'()*+,;=:@/?%]/giu;

/** Asks a worker how it is. Never throws: no answer is an answer. */
export function probeWorker(
  host: string,
  port: number,
  path: string,
  timeoutMs: number,
): Promise<WorkerHealth> {
  return new Promise((resolve) => {
    const asking = request({
      host,
      port,
      path: escaped(path.startsWith('/') ? path : `/${path}`),
      agent: false,
      headers: { connection: 'close', 'user-agent': 'berth-health-check' },
    });
    const settle = (health: WorkerHealth): void => {
      clearTimeout(timer);
      resolve(health);
      asking.destroy();
    };
    const timer = setTimeout(() => settle('unhealthy'), timeoutMs);
    asking.on('error', () => settle('unhealthy'));
    asking.on('response', ({ statusCode }) =>
      settle(statusCode === 200 ? 'ready' : statusCode === 204 ? 'starting' : 'unhealthy'),
    );
    asking.end();
  });
}

function escaped(path: string): string {
  return path.toWellFormed().replace(NOT_IN_A_PATH, encodeURIComponent);
}
