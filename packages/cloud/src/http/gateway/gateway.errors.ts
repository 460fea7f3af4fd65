import { MAX_DISCARDED_BYTES } from '../../domain/limits.ts';
import { BerthError } from '../../support/errors.ts';
import { sendJobError } from '../jobs/jobs.errors.ts';
import { discardBody as discardInTurns } from '../body-turns.ts';
import { sendJson } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { WORKER_HEADER } from './worker-affinity.ts';
import { RETRY_AFTER_S } from './gateway-limits.ts';
import { WORKER_PROXY_POLICY } from './proxy-policy.ts';
import type { ProxyPolicy } from './proxy-policy.ts';

/** A response of the gateway in place of the worker's. */
export class GatewayError extends Error {
  readonly status: number;
  /** A code for programs, if the API has one. */
  readonly reason: string | undefined;
  readonly headers: Record<string, string>;

  constructor(
    status: number,
    message: string,
    { reason, headers = {} }: { reason?: string; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.name = 'GatewayError';
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
  new BerthError('too-large', `the body is larger than the ${limit} bytes that are forwarded`);
export const responseTooLarge = (limit: number): GatewayError =>
  new GatewayError(502, `the worker's response is larger than the ${limit} bytes that are forwarded`);

/** Sends the error; if the response has begun, aborts it, so that it does not look whole. */
export function sendGatewayError(
  response: Response,
  error: GatewayError | BerthError,
  workerId?: string,
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.setHeader(REQUEST_ID_HEADER, requestIdOf(response.req));
  if (workerId !== undefined) response.setHeader(WORKER_HEADER, workerId);
  if (error instanceof BerthError) sendJobError(response, error);
  else
    sendJson(
      response,
      error.status,
      JSON.stringify({
        error: error.message,
        ...(error.reason !== undefined && { reason: error.reason }),
      }),
      error.headers,
    );
}

/** Reads the rest of a body and discards it, up to a limit. */
export function discardBody(request: Request): void {
  discardInTurns(request, MAX_DISCARDED_BYTES);
}
