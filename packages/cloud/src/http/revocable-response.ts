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

/**
 * Ends the answer, and with it the upload or the wait behind it, when its key is revoked or expires: with an
 * error where nothing was sent yet; else it breaks off, so that it does not look whole.
 */
export function endWhenRevoked(accesses: OpenAccesses, options: RevocableResponseOptions): void {
  const { response } = options;
  if (response.destroyed) return;
  response.on('close', accesses.watch(new RevocableResponse(options)));
}

class RevocableResponse implements OpenAccess {
  readonly credential: string;
  expiresAt: number | null;
  readonly #options: RevocableResponseOptions;

  constructor(options: RevocableResponseOptions) {
    this.credential = options.credential;
    this.expiresAt = options.expiresAt ?? null;
    this.#options = options;
  }

  authorize(): Promise<GrantedAccess> {
    return this.#options.authorize();
  }

  revoke(error: BerthError): void {
    const { response, sendError } = this.#options;
    if (response.headersSent) return void response.destroy();
    // Whoever still uploads is not listened to any longer.
    response.shouldKeepAlive = false;
    sendError(error);
  }
}
