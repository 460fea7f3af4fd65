import { createHash, createPublicKey, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** What an ACME server answered. */
export interface AcmeReply<T> {
  url: string;
  body: T;
  retryAfter: number | undefined;
}

/** The server refused, with its reason. */
export class AcmeError extends Error {}

interface Directory {
  newNonce: string;
  newAccount: string;
  newOrder: string;
}

const REQUEST_TIMEOUT_MS = 30_000;
/** A busy authority may refuse several nonces in a row; each refusal brings the next nonce. */
const NONCE_ATTEMPTS = 8;
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/** The signed requests of ACME (RFC 8555, section 6): a JWS with ES256 and a nonce, never used twice. */
export class AcmeTransport {
  readonly #directoryUrl: string;
  readonly #key: KeyObject;
  readonly #jwk: { crv: unknown; kty: unknown; x: unknown; y: unknown };
  #directory: Directory | undefined;
  #nonce: string | undefined;
  #accountUrl: string | undefined;

  constructor(directoryUrl: string, accountKey: KeyObject) {
    this.#directoryUrl = directoryUrl;
    this.#key = accountKey;
    const { crv, kty, x, y } = createPublicKey(accountKey).export({ format: 'jwk' });
    this.#jwk = { crv, kty, x, y };
  }

  async directory(): Promise<Directory> {
    this.#directory ??= (await (await send(this.#directoryUrl)).json()) as Directory;
    return this.#directory;
  }

  /** Registers the key, or finds the account that it already has. */
  async openAccount(email: string): Promise<void> {
    const { url } = await this.post((await this.directory()).newAccount, {
      termsOfServiceAgreed: true,
      ...(email !== '' && { contact: [`mailto:${email}`] }),
    });
    this.#accountUrl = url;
  }

  /** What proves to the authority that who answers a challenge also holds the key of the account. */
  challengeAnswer(token: string): string {
    // RFC 7638: the members of the key in this order, without spaces.
    return `${token}.${createHash('sha256').update(JSON.stringify(this.#jwk)).digest('base64url')}`;
  }

  /** Without a payload it is a read. */
  async post<T>(url: string, payload?: object): Promise<AcmeReply<T>> {
    const response = await this.#postText(url, payload === undefined ? '' : JSON.stringify(payload));
    return {
      url: response.headers.get('location') ?? url,
      body: (await response.json()) as T,
      retryAfter: Number(response.headers.get('retry-after')) || undefined,
    };
  }

  async download(url: string): Promise<string> {
    return (await this.#postText(url, '')).text();
  }

  async #postText(url: string, payload: string): Promise<Response> {
    for (let attempt = 1; ; attempt += 1) {
      const response = await send(url, {
        method: 'POST',
        headers: { 'content-type': 'application/jose+json' },
        body: this.#signed(url, payload, await this.#takeNonce()),
      });
      this.#nonce = response.headers.get('replay-nonce') ?? undefined;
      if (response.ok) return response;
      const text = await response.text();
      const problem = parseProblem(text);
      if (problem.type === BAD_NONCE && attempt < NONCE_ATTEMPTS) continue;
      throw new AcmeError(`${url} answers ${response.status}: ${problem.detail ?? text.slice(0, 300)}`);
    }
  }

  async #takeNonce(): Promise<string> {
    const kept = this.#nonce;
    this.#nonce = undefined;
    if (kept !== undefined) return kept;
    const { headers } = await send((await this.directory()).newNonce, { method: 'HEAD' });
    const nonce = headers.get('replay-nonce');
    if (nonce === null) throw new AcmeError(`${this.#directoryUrl} gives no nonce`);
    return nonce;
  }

  #signed(url: string, payload: string, nonce: string): string {
    const account = this.#accountUrl === undefined ? { jwk: this.#jwk } : { kid: this.#accountUrl };
    const head = base64Url(JSON.stringify({ alg: 'ES256', nonce, url, ...account }));
    const body = base64Url(payload);
    const signature = sign('sha256', Buffer.from(`${head}.${body}`), {
      key: this.#key,
      dsaEncoding: 'ieee-p1363',
    });
    return JSON.stringify({ protected: head, payload: body, signature: signature.toString('base64url') });
  }
}

async function send(url: string, request: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(url, { ...request, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  } catch (cause) {
    const { message, cause: reason } = cause as Error & { cause?: Error };
    throw new AcmeError(`${url} cannot be reached: ${reason?.message ?? message}`, { cause });
  }
}

function parseProblem(text: string): { type?: string; detail?: string } {
  try {
    return JSON.parse(text) as { type?: string; detail?: string };
  } catch {
    return {};
  }
}

function base64Url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
