/**
 * All error codes, as a closed set. Services throw these; each interface has one exhaustive table from code
 * to its own status and body.
 */
export type ErrorCode =
  /** The body is not JSON, or not text that can be stored (NUL, broken Unicode, nested too deep). */
  | 'malformed'
  /** The shape is wrong: a missing, unknown or mistyped field. `details` lists each finding. */
  | 'schema'
  /** The shape is right, but a rule forbids the value. */
  | 'rule'
  /** No key, or one that is unknown, expired, disabled or revoked. */
  | 'unauthenticated'
  /** A valid key without the scope for this. */
  | 'forbidden'
  /** It does not exist, or belongs to another account. */
  | 'not-found'
  /** No such route. */
  | 'no-route'
  /** The route exists, the method does not. */
  | 'method'
  /** The name is in use by another resource of this kind. */
  | 'taken'
  /** The same, where REST v2 answers 409: secrets and accounts. */
  | 'conflict'
  /** Another resource still uses this. */
  | 'in-use'
  /** Not possible in the current state. */
  | 'state'
  /** Nothing connected can run this now. */
  | 'capacity'
  /** The body is over its limit. */
  | 'too-large'
  /** The body has an unsupported content type. */
  | 'media-type'
  /** Too many requests in a window. */
  | 'rate'
  /** A limit of the account or the installation: on a number of things, on bytes, or on spending. */
  | 'quota-count'
  | 'quota-bytes'
  | 'quota-spending'
  /** The interface is switched off. */
  | 'retired'
  /** A required component does not answer now. */
  | 'unavailable'
  /** A bug in Berth. */
  | 'internal';

/** The limit that a refusal is about. */
export interface ReachedLimit {
  name: string;
  owner: string;
  used: number;
  maximum: number;
}

export interface ErrorExtras {
  /** One line per finding. */
  details?: string[];
  /** Headers of the response: Allow, Retry-After. */
  headers?: Record<string, string>;
  cause?: unknown;
  limit?: ReachedLimit;
  /** A code that existing GraphQL clients expect in place of ours. */
  clientCode?: string;
  /** With `unavailable`: writes are refused, and to try again at once is no use. */
  refusesWrites?: true;
}

export class BerthError extends Error {
  readonly code: ErrorCode;
  readonly details: string[];
  readonly headers: Record<string, string>;
  readonly clientCode: string | undefined;
  readonly limit: ReachedLimit | undefined;
  readonly refusesWrites: boolean;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'BerthError';
    this.code = code;
    this.details = extras.details ?? [];
    this.headers = extras.headers ?? {};
    this.clientCode = extras.clientCode;
    this.limit = extras.limit;
    this.refusesWrites = extras.refusesWrites === true;
  }
}

export function notFound(kind: string, id: string): BerthError {
  return new BerthError('not-found', `${kind} ${JSON.stringify(id.slice(0, 64))} not found`);
}

export function ruleError(message: string, details: string[] = []): BerthError {
  return new BerthError('rule', message, { details });
}

/** A request whose shape is wrong: one line for each finding. */
export function schemaError(details: string[]): BerthError {
  return new BerthError('schema', 'Request validation failed.', { details });
}
