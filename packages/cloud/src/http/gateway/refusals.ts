import { BerthError } from '../../support/errors.ts';
import { failJob } from '../jobs/failures.ts';
import { sendJson } from '../raw.ts';
import type { Request, Response } from '../raw.ts';
import { WORKER_HEADER } from './affinity.ts';
import { DROPPED_BYTES, RETRY_AFTER_S } from './limits.ts';
import { WORKERS } from './manner.ts';
import type { Manner } from './manner.ts';

/** What the gateway answers in a worker's place. */
export class Refusal extends Error {
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

export const noWorkers = (): Refusal =>
  new Refusal(503, 'no workers available', { headers: { 'retry-after': String(RETRY_AFTER_S) } });
export const workerGone = (id: string): Refusal =>
  new Refusal(404, `worker ${JSON.stringify(id.slice(0, 64))} is gone`, { reason: 'affinity_worker_gone' });
export const workerTimeout = (id: string): Refusal =>
  new Refusal(400, `worker ${JSON.stringify(id.slice(0, 64))} was not free in time`, {
    reason: 'worker_timeout',
  });
export const overTime = (milliseconds: number, { noun, lateStatus }: Manner = WORKERS): Refusal =>
  new Refusal(lateStatus, `the ${noun} did not answer within ${milliseconds / 1000} s`);
export const badGateway = (why: string, { noun }: Manner = WORKERS): Refusal =>
  new Refusal(502, `the ${noun} did not answer: ${why}`);
export const requestTooLarge = (limit: number): BerthError =>
  new BerthError('too-large', `the body is larger than the ${limit} bytes that are passed on here`);
export const responseTooLarge = (limit: number): Refusal =>
  new Refusal(502, `the worker's response is larger than the ${limit} bytes that are passed on here`);

/** Answers with a refusal; where the answer has begun already, cuts it off, so that nobody takes a part for the whole. */
export function refuse(response: Response, refusal: Refusal | BerthError, workerId?: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (workerId !== undefined) response.setHeader(WORKER_HEADER, workerId);
  if (refusal instanceof BerthError) failJob(response, refusal);
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
export function dropRest(request: Request): void {
  if (request.readableEnded || request.destroyed) return;
  let dropped = 0;
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > DROPPED_BYTES) request.destroy();
  });
  request.resume();
}
