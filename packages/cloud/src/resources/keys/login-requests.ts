import { randomBytes } from 'node:crypto';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { ResourceContext } from '../resource-context.ts';
import { checkKeyName } from './api-keys.ts';
import type { ApiKeys } from './api-keys.ts';
import type { LoginRequest } from '../../domain/login-request.ts';

const RESOURCE = 'login request';
const LOGIN_REQUEST_TTL_MS = 10 * 60 * 1000;
/** A limit on memory: requests need no key. Far more than people sign in within ten minutes. */
const MAX_PENDING_REQUESTS = 1000;
const DEFAULT_KEY_NAME = 'signed in from a program';
const MAX_TEXT_LENGTH = 200;

export interface NewLoginRequest {
  keyName?: string | undefined;
  codeChallenge?: string | undefined;
  codeChallengeMethod?: string | undefined;
}

/** The current state: EXPIRED after its time is over, whatever it was before. */
export interface LoginRequestView extends Omit<LoginRequest, 'status'> {
  status: LoginRequest['status'] | 'EXPIRED';
}

/**
 * How a program without a key gets one: it creates a request, shows its id to the user, and polls
 * until the user has approved it with a key of their own. The id is a secret: anyone who knows it can
 * fetch the new key, once.
 */
export class LoginRequests {
  readonly #context: ResourceContext;
  readonly #keys: ApiKeys;

  constructor(context: ResourceContext, keys: ApiKeys) {
    this.#context = context;
    this.#keys = keys;
  }

  async create({
    keyName = DEFAULT_KEY_NAME,
    codeChallenge,
    codeChallengeMethod,
  }: NewLoginRequest): Promise<LoginRequestView> {
    // Checked now and not at the approval, so that the program can correct it.
    checkKeyName(keyName);
    for (const text of [codeChallenge, codeChallengeMethod])
      if ((text?.length ?? 0) > MAX_TEXT_LENGTH)
        throw ruleError(
          `codeChallenge and codeChallengeMethod may have at most ${MAX_TEXT_LENGTH} characters each`,
        );
    const now = this.#context.clock.now();
    const request: LoginRequest = {
      id: randomBytes(24).toString('base64url'),
      keyName,
      codeChallenge: codeChallenge ?? null,
      codeChallengeMethod: codeChallengeMethod ?? null,
      status: 'PENDING',
      key: null,
      createdAt: now,
      expiresAt: now + LOGIN_REQUEST_TTL_MS,
    };
    if (!(await this.#context.store.loginRequests.insert(request, MAX_PENDING_REQUESTS)))
      throw new BerthError('rate', 'too many login requests are pending; try again later', {
        headers: { 'retry-after': String(LOGIN_REQUEST_TTL_MS / 1000) },
      });
    return request;
  }

  /** The first poll after the approval has the new key; later ones do not. */
  async poll(id: string): Promise<LoginRequestView> {
    const found = await this.#context.store.loginRequests.find(id);
    if (found === undefined) throw notFound(RESOURCE, id);
    if (found.status !== 'APPROVED' || this.#isExpired(found))
      return { ...found, key: null, ...(this.#isExpired(found) && { status: 'EXPIRED' }) };
    let fetched: LoginRequest | undefined;
    await this.#context.store.loginRequests.change(id, (current) => {
      fetched = current;
      return { ...current, status: current.status === 'APPROVED' ? 'CONSUMED' : current.status, key: null };
    });
    return fetched ?? { ...found, key: null };
  }

  /** Creates a key of the caller's account for the program that made the request. */
  async approve(caller: Caller, id: string): Promise<LoginRequestView> {
    const pending = await this.#pending(id);
    const { key, text } = await this.#newKey(caller, pending);
    let decided = false;
    const changed = await this.#context.store.loginRequests.change(id, (current) => {
      decided = current.status === 'PENDING';
      return decided ? { ...current, status: 'APPROVED', key: text } : current;
    });
    // Another approval was faster: there is one key for each request.
    if (!decided) await this.#keys.revoke(caller, key);
    return { ...(changed ?? pending), key: null };
  }

  async deny(_caller: Caller, id: string): Promise<LoginRequestView> {
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
    if (found === undefined) throw notFound(RESOURCE, id);
    if (found.status !== 'PENDING' || this.#isExpired(found))
      throw ruleError('this login request was answered already or has expired; start a new one');
    return found;
  }

  #isExpired({ expiresAt }: LoginRequest): boolean {
    return expiresAt < this.#context.clock.now();
  }
}
