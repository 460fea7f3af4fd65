import type { BerthError, ErrorCode } from '../../support/errors.ts';
import { sendJson } from '../raw-http.ts';
import type { BasicResponse } from '../raw-http.ts';

/** The job API answers every failure as an object with one key, `error`. */
export const JOB_ERROR_STATUS: Record<ErrorCode, number> = {
  malformed: 400,
  schema: 400,
  rule: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'no-route': 404,
  method: 405,
  taken: 400,
  conflict: 409,
  'in-use': 400,
  state: 400,
  capacity: 503,
  'too-large': 413,
  'media-type': 415,
  rate: 429,
  'quota-count': 403,
  'quota-bytes': 507,
  'quota-spending': 402,
  retired: 410,
  unavailable: 503,
  internal: 500,
};

export function sendJobError(response: BasicResponse, error: BerthError): void {
  // An answer that has begun, a stream, can no longer turn into a failure: it breaks off, so that the client
  // asks again.
  if (response.headersSent) return void response.destroy();
  const findings = error.details.length === 0 ? '' : `: ${error.details.join('; ')}`;
  sendJson(
    response,
    JOB_ERROR_STATUS[error.code],
    JSON.stringify({ error: error.message + findings, ...(error.limit && { limit: error.limit.name }) }),
    error.headers,
  );
}
