import type { FastifyReply } from 'fastify';
import type { BerthError, ErrorCode } from '../../support/errors.ts';
import { named, object, text } from '../rest/json-schema.ts';

export const v1ErrorSchema = named(
  'Error',
  object(
    { message: text({ description: 'What is wrong, and what to change' }) },
    {},
    { description: 'What went wrong' },
  ),
);

/** REST v1 knows no 409 or 422: a refusal is 400. */
const STATUS_BY_CODE: Record<ErrorCode, number> = {
  malformed: 400,
  schema: 400,
  rule: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'no-route': 404,
  method: 405,
  taken: 400,
  conflict: 400,
  'in-use': 400,
  state: 400,
  capacity: 400,
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

export function sendV1Error(reply: FastifyReply, error: BerthError): FastifyReply {
  return reply
    .code(STATUS_BY_CODE[error.code])
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ message: messageOf(error) }));
}

/**
 * One text holds everything, since v1 has one field for it. Unknown keys keep the sentence that clients know.
 */
function messageOf({ code, message, details }: BerthError): string {
  if (code !== 'schema') return message;
  const extra = details.some((finding) => finding.includes('additional properties'))
    ? 'Extra input keys provided in request body. '
    : '';
  return extra + details.join('; ');
}
