import type { FastifyReply } from 'fastify';
import { STATUS_CODES } from '../../support/node-http.ts';
import type { BerthError, ErrorCode } from '../../support/errors.ts';
import { integer, list, named, number, object, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';

/** REST v2 answers every error as an RFC 9457 problem. */
export const problemSchema = named(
  'Problem',
  object(
    {
      title: text({ description: 'The name of the status' }),
      status: integer({ description: 'The HTTP status' }),
      detail: text({ description: 'What is wrong, and what to change' }),
    },
    {
      errors: list(text(), { description: 'Single findings, where there are several' }),
      limit: text({
        description: 'The limit of the account or the installation that is reached',
        examples: ['pods'],
      }),
      used: number({ description: 'How much of that limit is used' }),
      maximum: number({ description: 'That limit' }),
    },
    { description: 'What went wrong (RFC 9457)' },
  ),
);

export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

const STATUS_BY_CODE: Record<ErrorCode, number> = {
  malformed: 400,
  schema: 422,
  rule: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'no-route': 404,
  method: 405,
  taken: 400,
  conflict: 409,
  'in-use': 400,
  state: 409,
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

export function toProblem(error: BerthError): {
  status: number;
  title: string;
  body: Static<typeof problemSchema>;
} {
  const status = STATUS_BY_CODE[error.code];
  const title = STATUS_CODES[status] ?? 'Error';
  return {
    status,
    title,
    body: {
      title,
      status,
      detail: error.message,
      ...(error.details.length > 0 && { errors: error.details }),
      ...(error.limit !== undefined && {
        limit: error.limit.name,
        used: error.limit.used,
        maximum: error.limit.maximum,
      }),
    },
  };
}

export function sendV2Error(reply: FastifyReply, error: BerthError): FastifyReply {
  const { status, body } = toProblem(error);
  return reply.code(status).headers(error.headers).type(PROBLEM_MEDIA_TYPE).send(JSON.stringify(body));
}
