import { memberText, withMember } from '../support/json-text.ts';

/** The member of a request with the S3 credentials that a worker uploads results with. */
const CREDENTIALS = 's3Config';
/** Marks a sealed value. No client means it: `s3Config` is an object. */
const SEALED = 'berth-sealed:';

export interface ValueSealer {
  seal(plain: string, context: string): string;
  open(sealed: string, context: string): string;
}

/**
 * Keeps the credentials in a request sealed while they are stored. They are opened for the worker that gets
 * the job, and deleted with its request.
 */
export class RequestCredentials {
  readonly #sealer: ValueSealer;

  constructor(sealer: ValueSealer) {
    this.#sealer = sealer;
  }

  seal(request: string, endpointId: string): string {
    const plain = mayHaveCredentials(request) ? memberText(request, CREDENTIALS) : undefined;
    if (plain === undefined || plain === 'null') return request;
    const sealed = SEALED + this.#sealer.seal(plain, context(endpointId));
    return withMember(request, CREDENTIALS, JSON.stringify(sealed));
  }

  /** A request that was stored by an earlier version is not sealed. */
  open(request: string, endpointId: string): string {
    if (!request.includes(SEALED)) return request;
    const value = JSON.parse(memberText(request, CREDENTIALS) ?? 'null') as unknown;
    if (typeof value !== 'string' || !value.startsWith(SEALED)) return request;
    return withMember(
      request,
      CREDENTIALS,
      this.#sealer.open(value.slice(SEALED.length), context(endpointId)),
    );
  }
}

/** A letter of the member's name as an escape, which no common client writes. */
const ESCAPED_LETTER = /\\u00(?:73|33|43|6[6-9ef])/i;

/** Cheap, for every request. */
function mayHaveCredentials(request: string): boolean {
  return request.includes(CREDENTIALS) || ESCAPED_LETTER.test(request);
}

function context(endpointId: string): string {
  return `s3Config of jobs of ${endpointId}`;
}
