import type { FastifyInstance } from 'fastify';
import { bearerKey } from '../auth/bearer.ts';
import { BerthError } from '../support/errors.ts';

/** A store that takes longer is not ready. */
const READY_TIMEOUT_MS = 2000;

/** What Prometheus reads. */
export interface MetricsText {
  readonly contentType: string;
  read(): Promise<string>;
}

export interface HealthRoutesDeps {
  ready(): Promise<void>;
  metrics: MetricsText;
  /** Throws unless the key may read the metrics, which cover all accounts. */
  checkMetricsKey?: ((key: string | undefined) => Promise<void>) | undefined;
}

/**
 * For monitoring: /healthz (the process runs), /readyz (its database answers and takes writes) and /metrics.
 */
export function healthRoutes(
  app: FastifyInstance,
  { ready, metrics, checkMetricsKey }: HealthRoutesDeps,
): void {
  const routes: Record<
    string,
    (key: string | undefined) => Promise<{ status: number; type: string; body: string }>
  > = {
    '/healthz': async () => ({ status: 200, type: 'application/json', body: '{"status":"ok"}' }),
    '/readyz': async () => {
      const reason = await notReadyReason(ready());
      return reason === undefined
        ? { status: 200, type: 'application/json', body: '{"status":"ready"}' }
        : { status: 503, type: 'application/json', body: JSON.stringify({ status: 'not ready', reason }) };
    },
    '/metrics': async (key) => {
      await checkMetricsKey?.(key);
      return { status: 200, type: metrics.contentType, body: await metrics.read() };
    },
  };
  for (const [url, answer] of Object.entries(routes)) {
    app.get(url, async (request, reply) => {
      const { status, type, body } = await answer(bearerKey(request.headers.authorization));
      return reply.code(status).type(type).send(body);
    });
    app.route({
      method: ['POST', 'PUT', 'PATCH', 'DELETE'],
      url,
      handler: () => {
        throw new BerthError('method', 'only GET is allowed here', { headers: { allow: 'GET' } });
      },
    });
  }
}

/** Why it is not ready, in words for everybody; undefined if it is. */
export async function notReadyReason(ready: Promise<void>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('the database takes too long to answer'), READY_TIMEOUT_MS);
  });
  const state = ready.then(
    () => undefined,
    (error: unknown) =>
      error instanceof BerthError && (error.refusesWrites || error.code === 'state')
        ? error.message
        : 'the database does not answer',
  );
  try {
    return await Promise.race([state, late]);
  } finally {
    clearTimeout(timer);
  }
}
