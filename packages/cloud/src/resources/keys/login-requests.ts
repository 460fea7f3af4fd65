import { randomBytes } from 'node:crypto';
import type { LoginRequest } from '../../store/login-requests.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import type { Context } from '../context.ts';
import { checkKeyName } from './keys.ts';
import type { Keys } from './keys.ts';

const KIND = 'login request';
const VALID_MS = 10 * 60 * 1000;
/** Far more than people sign in within ten minutes; anybody can ask. */
const MAX_OPEN = 1000;
const DEFAULT_KEY_NAME = 'signed in from a program';
const MAX_TEXT = 200;

export interface NewLoginRequest {
  keyName?: string | undefined;
  codeChallenge?: string | undefined;
  codeChallengeMethod?: string | undefined;
}

/** As it is at this moment: one whose time is over is EXPIRED, whatever it was. */
export interface ShownLoginRequest extends Omit<LoginRequest, 'status'> {
  status: LoginRequest['status'] | 'EXPIRED';
}

/**
 * How a program without a key gets one: it asks, shows its user the request's id, and looks again
 * until the user has said yes with a key of their own. The id is the secret between them: whoever
 * knows it may fetch the new key, once.
 */
export class LoginRequests {
  readonly #context: Context;
  readonly #keys: Keys;

  constructor(context: Context, keys: Keys) {
    this.#context = context;
    this.#keys = keys;
  }

  async create({
    keyName = DEFAULT_KEY_NAME,
    codeChallenge,
    codeChallengeMethod,
  }: NewLoginRequest): Promise<ShownLoginRequest> {
    // Now and not when somebody says yes: the program can still mend it.
    checkKeyName(keyName);
    for (const text of [codeChallenge, codeChallengeMethod])
      if ((text?.length ?? 0) > MAX_TEXT) throw rule(`at most ${MAX_TEXT} characters each`);
    const now = this.#context.clock.now();
    const request: LoginRequest = {
      id: randomBytes(24).toString('base64url'),
      keyName,
      codeChallenge: codeChallenge ?? null,
      codeChallengeMethod: codeChallengeMethod ?? null,
      status: 'PENDING',
      key: null,
      createdAt: now,
      expiresAt: now + VALID_MS,
    };
    if (!(await this.#context.store.loginRequests.insert(request, MAX_OPEN)))
      throw new BerthError('rate', 'too many programs ask for a key at this moment; try again later', {
        headers: { 'retry-after': String(VALID_MS / 1000) },
      });
    return request;
  }

  /** The new key is in it once, and never again. */
  async look(id: string): Promise<ShownLoginRequest> {
    const found = await this.#context.store.loginRequests.find(id);
    if (found === undefined) throw notFound(KIND, id);
    if (found.status !== 'APPROVED' || this.#isOver(found))
      return { ...found, key: null, ...(this.#isOver(found) && { status: 'EXPIRED' }) };
    let fetched: LoginRequest | undefined;
    await this.#context.store.loginRequests.change(id, (current) => {
      fetched = current;
      return { ...current, status: current.status === 'APPROVED' ? 'CONSUMED' : current.status, key: null };
    });
    return fetched ?? { ...found, key: null };
  }

  /** Makes a key of the caller's account for whoever asked. */
  async approve(caller: Caller, id: string): Promise<ShownLoginRequest> {
    const pending = await this.#pending(id);
    const { key, text } = await this.#newKey(caller, pending);
    let decided = false;
    const changed = await this.#context.store.loginRequests.change(id, (current) => {
      decided = current.status === 'PENDING';
      return decided ? { ...current, status: 'APPROVED', key: text } : current;
    });
    // Someone else was faster: there is one key for one request.
    if (!decided) await this.#keys.revoke(caller, key);
    return { ...(changed ?? pending), key: null };
  }

  async deny(_caller: Caller, id: string): Promise<ShownLoginRequest> {
    const pending = await this.#pending(id);
    const changed = await this.#context.store.loginRequests.change(id, (current) =>
      current.status === 'PENDING' ? { ...current, status: 'DENIED' } : current,
    );
    return { ...(changed ?? pending), key: null };
  }

  async #newKey(caller: Caller, { keyName }: LoginRequest): Promise<{ key: string; text: string }> {
    const made = await this.#keys.create(caller, { name: keyName, access: 'all' });
    return { key: made.record.id, text: made.key };
  }

  async #pending(id: string): Promise<LoginRequest> {
    const found = await this.#context.store.loginRequests.find(id);
    if (found === undefined) throw notFound(KIND, id);
    if (found.status !== 'PENDING' || this.#isOver(found))
      throw rule('this request was answered already, or is too old; begin again');
    return found;
  }

  #isOver({ expiresAt }: LoginRequest): boolean {
    return expiresAt < this.#context.clock.now();
  }
}
