import type { GrantedAccess, OpenAccess, OpenAccesses } from '../auth/open-access.ts';
import type { BerthError } from '../support/errors.ts';
import type { BasicResponse } from './raw-http.ts';

export interface RevocableResponseOptions extends GrantedAccess {
  response: BasicResponse;
  credential: string;
  /** Rejects if access is lost. */
  authorize(): Promise<GrantedAccess>;
  /** Sends the error, where nothing was sent yet. */
  sendError(error: BerthError): void;
}

/** A request that ends its own key, such as a pod that deletes itself, gets its answer within this time. */
const OWN_ANSWER_MS = 300;

/**
 * Ends the answer, and with it the upload or the wait behind it, when its key is revoked or expires: with an
 * error where nothing was sent yet; else it breaks off, so that it does not look whole.
 */
export function endWhenRevoked(accesses: OpenAccesses, options: RevocableResponseOptions): void {
  const { response } = options;
  if (response.destroyed) return;
  const revocable = new RevocableResponse(options);
  const unwatch = accesses.watch(revocable);
  response.on('close', () => {
    unwatch();
    revocable.cancel();
  });
}

class RevocableResponse implements OpenAccess {
  readonly credential: string;
  expiresAt: number | null;
  readonly #options: RevocableResponseOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RevocableResponseOptions) {
    this.credential = options.credential;
    this.expiresAt = options.expiresAt ?? null;
    this.#options = options;
  }

  authorize(): Promise<GrantedAccess> {
    return this.#options.authorize();
  }

  revoke(error: BerthError): void {
    const { response } = this.#options;
    if (response.headersSent) return void response.destroy();
    this.#timer ??= setTimeout(() => this.#end(error), OWN_ANSWER_MS);
  }

  /** It has ended by itself. */
  cancel(): void {
    clearTimeout(this.#timer);
  }

  #end(error: BerthError): void {
    const { response, sendError } = this.#options;
    if (response.headersSent) return void response.destroy();
    // The rest of an upload in progress is not read.
    response.shouldKeepAlive = false;
    sendError(error);
  }
}
