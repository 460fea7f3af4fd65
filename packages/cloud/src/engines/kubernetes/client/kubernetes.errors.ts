import { BerthError, type ErrorCode } from '../../../support/errors.ts';

/** The API server's answer to a request that failed. */
export class KubernetesApiError extends Error {
  readonly status: number;
  readonly reason: string;
  /** From Retry-After; undefined where the answer has none. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

export function apiStatus(error: unknown): number | undefined {
  if (error instanceof KubernetesApiError) return error.status;
  return error instanceof BerthError ? apiStatus(error.cause) : undefined;
}

export function isNotFound(error: unknown): boolean {
  return apiStatus(error) === 404;
}

export function isConflict(error: unknown): boolean {
  return apiStatus(error) === 409;
}

/**
 * Whether the API server could not be asked, or could not answer just then. The same request may work soon.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof BerthError) return error.cause !== undefined && isTransient(error.cause);
  if (error instanceof KubernetesApiError) return error.status === 429 || error.status >= 500;
  return error instanceof Error && error.name !== 'AbortError';
}

/**
 * The message for a user of Berth. Client errors are permanent, except conflicts, quotas, rights and rate
 * limits.
 */
export function toKubernetesError(error: unknown): BerthError {
  if (error instanceof BerthError) return error;
  if (!(error instanceof KubernetesApiError))
    return new BerthError(
      'unavailable',
      `the Kubernetes cluster does not answer: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  const { status, reason, message } = error;
  if (status === 403 && /exceeded quota/.test(message))
    return new BerthError('capacity', `a quota of the cluster is used up: ${message}`, { cause: error });
  const permanent = status === 400 || status === 404 || status === 422;
  const code: ErrorCode = permanent ? 'rule' : 'unavailable';
  const hint =
    status === 401 || status === 403
      ? '; see deploy/kubernetes/role.yaml for the rights that Berth needs'
      : '';
  return new BerthError(code, `Kubernetes refused (${reason || status}): ${message}${hint}`, {
    cause: error,
  });
}
