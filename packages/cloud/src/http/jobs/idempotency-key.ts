import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { MAX_IDEMPOTENCY_KEY_LENGTH } from '../../domain/limits.ts';
import type { SubmitRequest } from '../../queue/job-submitter.ts';
import { BerthError } from '../../support/errors.ts';

/**
 * The Idempotency-Key of a submission, if it has one. A later request with the same key gets the same job; with
 * another body, which is compared by its hash, it is refused (`queue/job-submitter.ts`).
 */
export function readIdempotencyKey(
  headers: IncomingHttpHeaders,
  body: string,
): Pick<SubmitRequest, 'idempotency'> {
  const key = headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') return {};
  if (key.length > MAX_IDEMPOTENCY_KEY_LENGTH)
    throw new BerthError('rule', `an Idempotency-Key has at most ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`);
  return { idempotency: { key, bodyHash: createHash('sha256').update(body).digest('hex') } };
}
