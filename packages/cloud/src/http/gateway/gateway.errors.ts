import { BerthError } from '../../support/errors.ts';
import { sendJobError } from '../jobs/jobs.errors.ts';
import { sendJson } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import { WORKER_HEADER } from './worker-affinity.ts';
import { MAX_DISCARDED_BYTES, RETRY_AFTER_S } from './gateway-limits.ts';
import { WORKER_PROXY_POLICY } from './proxy-policy.ts';
import type { ProxyPolicy } from './proxy-policy.ts';

/** What the gateway answers in a worker's place. */
export class GatewayError extends Error {
  readonly status: number;
  /** A word for programs, where the interface has one. */
  readonly reason: string | undefined;
  readonly headers: Record<string, string>;

  constructor(
    status: number,
    message: string,
    { reason, headers = {} }: { reason?: string; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.reason = reason;
    this.headers = headers;
  }
}

export const noWorkers = (): GatewayError =>
  new GatewayError(503, 'no workers available', { headers: { 'retry-after': String(RETRY_AFTER_S) } });
export const workerGone = (id: string): GatewayError =>
  new GatewayError(404, `worker ${JSON.stringify(id.slice(0, 64))} is gone`, {
    reason: 'affinity_worker_gone',
  });
export const workerTimeout = (id: string): GatewayError =>
  new GatewayError(400, `worker ${JSON.stringify(id.slice(0, 64))} was not free in time`, {
    reason: 'worker_timeout',
  });
export const upstreamTimeout = (
  milliseconds: number,
  { noun, timeoutStatus }: ProxyPolicy = WORKER_PROXY_POLICY,
): GatewayError =>
  new GatewayError(timeoutStatus, `the ${noun} did not answer within ${milliseconds / 1000} s`);
export const badGateway = (why: string, { noun }: ProxyPolicy = WORKER_PROXY_POLICY): GatewayError =>
  new GatewayError(502, `the ${noun} did not answer: ${why}`);
export const requestTooLarge = (limit: number): BerthError =>
  new BerthError('too-large', `the body is larger than the ${limit} bytes that are passed on here`);
export const responseTooLarge = (limit: number): GatewayError =>
  new GatewayError(502, `the worker's response is larger than the ${limit} bytes that are passed on here`);

/** Answers with a refusal; where the answer has begun already, cuts it off, so that nobody takes a part for the whole. */
export function sendGatewayError(
  response: Response,
  refusal: GatewayError | BerthError,
  workerId?: string,
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (workerId !== undefined) response.setHeader(WORKER_HEADER, workerId);
  if (refusal instanceof BerthError) sendJobError(response, refusal);
  else
    sendJson(
      response,
      refusal.status,
      JSON.stringify({
        error: refusal.message,
        ...(refusal.reason !== undefined && { reason: refusal.reason }),
      }),
      refusal.headers,
    );
}

/** Reads the rest of a body and throws it away: to close on a client that still sends would lose the answer. One that does not end is closed on all the same. */
export function discardBody(request: Request): void {
  if (request.readableEnded || request.destroyed) return;
  let dropped = 0;
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_DISCARDED_BYTES) request.destroy();
  });
  request.resume();
}
