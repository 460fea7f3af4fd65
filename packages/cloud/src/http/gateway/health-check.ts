import { request } from '../../support/node-http.ts';

/** 200 is ready, 204 is starting, any other response or none is unhealthy. */
export type WorkerHealth = 'ready' | 'starting' | 'unhealthy';

/** Characters that must be escaped in a path and its query. An existing escape stays. */
const UNESCAPED = /%(?![0-9a-f]{2})|[^a-z0-9\-._~!$&'()*+,;=:@/?%]/giu;

/** Sends a health check to a worker. Never throws: no response means unhealthy. */
export function probeWorker(
  host: string,
  port: number,
  path: string,
  timeoutMs: number,
): Promise<WorkerHealth> {
  return new Promise((resolve) => {
    const probe = request({
      host,
      port,
      path: escapePath(path.startsWith('/') ? path : `/${path}`),
      agent: false,
      headers: { connection: 'close', 'user-agent': 'berth-health-check' },
    });
    const finish = (health: WorkerHealth): void => {
      clearTimeout(timer);
      resolve(health);
      probe.destroy();
    };
    const timer = setTimeout(() => finish('unhealthy'), timeoutMs);
    probe.on('error', () => finish('unhealthy'));
    probe.on('response', ({ statusCode }) =>
      finish(statusCode === 200 ? 'ready' : statusCode === 204 ? 'starting' : 'unhealthy'),
    );
    probe.end();
  });
}

function escapePath(path: string): string {
  return path.toWellFormed().replace(UNESCAPED, encodeURIComponent);
}
