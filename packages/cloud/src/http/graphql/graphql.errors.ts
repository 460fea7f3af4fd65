import type { FastifyReply } from 'fastify';
import type { BerthError, ErrorCode } from '../../support/errors.ts';

/** One thing that went wrong, and where in the document or the answer. */
export interface LocatedError {
  error: BerthError;
  path?: readonly (string | number)[] | undefined;
  locations?: readonly { line: number; column: number }[] | undefined;
}

/** A document that is not carried out, for one reason or several. */
export class DocumentRejectedError extends Error {
  readonly errors: readonly LocatedError[];

  constructor(findings: readonly LocatedError[]) {
    super('the document was refused');
    this.name = 'Refused';
    this.errors = findings;
  }
}

/** Clients demand 200 and read `errors`; only these codes have a status of their own. */
const STATUS_BY_CODE: Record<ErrorCode, number> = {
  malformed: 200,
  schema: 200,
  rule: 200,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 200,
  'no-route': 404,
  method: 405,
  taken: 200,
  conflict: 200,
  'in-use': 200,
  state: 200,
  capacity: 200,
  'too-large': 413,
  'media-type': 200,
  rate: 429,
  // Clients read `errors`, and `limit` in them.
  'quota-count': 200,
  'quota-bytes': 200,
  'quota-spending': 200,
  retired: 410,
  unavailable: 503,
  internal: 200,
};

/** Clients test whether the key `errors` is there, so a success has none. */
export function sendData(reply: FastifyReply, data: Record<string, unknown>): FastifyReply {
  return sendJson(reply, { data });
}

/** Where some fields have an answer, they are in it and the status is 200. */
export function sendErrors(
  reply: FastifyReply,
  findings: readonly LocatedError[],
  data: Record<string, unknown> | null = null,
): FastifyReply {
  const first = findings[0]?.error;
  if (data === null && first !== undefined) reply.code(STATUS_BY_CODE[first.code]).headers(first.headers);
  return sendJson(reply, { errors: findings.map(serializeError), data });
}

function serializeError({ error, path, locations }: LocatedError) {
  return {
    message: error.message,
    ...(path !== undefined && { path }),
    ...(locations !== undefined && { locations }),
    extensions: {
      code: error.clientCode ?? error.code.toUpperCase().replaceAll('-', '_'),
      ...(error.details.length > 0 && { details: error.details }),
      ...(error.limit !== undefined && {
        limit: error.limit.name,
        used: error.limit.used,
        maximum: error.limit.maximum,
      }),
    },
  };
}

function sendJson(reply: FastifyReply, body: unknown): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
