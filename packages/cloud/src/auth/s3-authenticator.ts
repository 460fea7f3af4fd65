import type { Caller } from '../domain/caller.ts';
import type { S3Key } from '../domain/records.ts';
import { type Clock, wallNow } from '../support/clock.ts';
import { timingSafeEqualText } from '../support/crypto.ts';
import { BerthError } from '../support/errors.ts';
import type { Authenticator } from './authenticator.ts';
import { bearerKey } from './bearer.ts';
import type { OpenAccess } from './open-access.ts';
import type { S3Credentials } from './s3-credentials.ts';
import type { AccessMode } from './scopes.ts';
import { SIGV4_ALGORITHM, canonicalRequest, sign, signingKey, sigV4Time, stringToSign } from './sigv4.ts';
import type { RequestSignature, SignedHeaders } from './sigv4.ts';

/** How far a client's clock may be off. */
const MAX_CLOCK_SKEW_MS = 3_600_000;
/** The longest validity of a presigned URL, in seconds. */
const MAX_PRESIGNED_SECONDS = 7 * 24 * 3600;
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';

/** Why a signature was rejected, in the error codes of S3. */
export type S3AuthErrorCode =
  | 'AccessDenied'
  | 'AuthorizationHeaderMalformed'
  | 'AuthorizationQueryParametersError'
  | 'InvalidAccessKeyId'
  | 'InvalidRequest'
  | 'RequestTimeTooSkewed'
  | 'SignatureDoesNotMatch';

export class S3AuthError extends Error {
  override readonly name = 'S3AuthError';
  readonly code: S3AuthErrorCode;
  /** More elements of the error document. */
  readonly fields: Readonly<Record<string, string>>;

  constructor(code: S3AuthErrorCode, message: string, fields: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.fields = fields;
  }
}

export interface S3AuthenticatorDeps {
  credentials: Pick<S3Credentials, 'find' | 'recordUse'>;
  authenticator: Pick<Authenticator, 'authorize'>;
  clock: Clock;
}

/** What a signature covers. */
export interface S3SignedRequest {
  method: string;
  path: string;
  query: readonly (readonly [string, string])[];
  headers: SignedHeaders & { authorization?: string | undefined; date?: string | undefined };
}

/** The caller, and how the request was signed. With an API key in the header there is no signature. */
export interface AuthenticatedS3Request {
  caller: Caller;
  /** The SHA-256 of the body that the client sent, or the constant that replaces it. */
  payloadHash: string;
  signing?: SigningContext;
  /** What the access depends on, while the answer is open. */
  access: Omit<OpenAccess, 'revoke'>;
}

/** The signature that the signatures of the body's chunks are chained to. */
export interface SigningContext extends RequestSignature {
  key: Buffer;
}

/**
 * Authenticates S3 requests: signed with an S3 key in the header or in the URL, or with an API key as bearer
 * token.
 */
export class S3Authenticator {
  readonly #deps: S3AuthenticatorDeps;

  constructor(deps: S3AuthenticatorDeps) {
    this.#deps = deps;
  }

  async authorize(
    request: S3SignedRequest,
    mode: AccessMode,
    requestId: string,
  ): Promise<AuthenticatedS3Request> {
    const { authorization } = request.headers;
    if (authorization?.startsWith(SIGV4_ALGORITHM) === true)
      return this.#verify(
        request,
        mode,
        requestId,
        this.#fromHeader(request, authorization),
        payloadHashOf(request),
      );
    const parameters = new Map([...request.query].reverse());
    if (parameters.has('X-Amz-Algorithm') || parameters.has('X-Amz-Signature'))
      return this.#verify(
        request,
        mode,
        requestId,
        this.#fromQuery(parameters),
        payloadHashOf(request, parameters.get('X-Amz-Content-Sha256') ?? UNSIGNED_PAYLOAD),
      );
    if (authorization === undefined)
      throw new S3AuthError(
        'AccessDenied',
        'the request is not signed: sign it with an S3 key (create one with "berth key create --s3")',
      );
    if (!/^bearer /i.test(authorization))
      throw new S3AuthError(
        'InvalidRequest',
        `the authorization scheme is not supported; sign with ${SIGV4_ALGORITHM}`,
      );
    return this.#authorizeApiKey(request, mode, requestId);
  }

  async #authorizeApiKey(
    request: S3SignedRequest,
    mode: AccessMode,
    requestId: string,
  ): Promise<AuthenticatedS3Request> {
    const credential = bearerKey(request.headers.authorization);
    const authorize = (): Promise<Caller> =>
      this.#deps.authenticator.authorize(credential, { interface: 's3', scope: 'rest', mode, requestId });
    try {
      const caller = await authorize();
      return {
        caller,
        payloadHash: payloadHashOf(request, UNSIGNED_PAYLOAD),
        access: { credential: credential ?? '', expiresAt: caller.expiresAt ?? null, authorize },
      };
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unauthenticated')
        throw new S3AuthError('InvalidAccessKeyId', error.message);
      throw error;
    }
  }

  async #verify(
    request: S3SignedRequest,
    mode: AccessMode,
    requestId: string,
    signature: RequestSignature,
    payloadHash: string,
  ): Promise<AuthenticatedS3Request> {
    const { credentials } = this.#deps;
    const unsigned = Object.keys(request.headers).filter(
      (name) => name.startsWith('x-amz-') && !MAY_BE_UNSIGNED.has(name) && !signature.headers.includes(name),
    );
    if (!signature.headers.includes('host'))
      throw new S3AuthError('AccessDenied', 'the header "host" must be signed');
    if (unsigned.length > 0)
      throw new S3AuthError('AccessDenied', `these headers must be signed: ${unsigned.join(', ')}`);
    const credential = await credentials.find(signature.scope.accessId);
    if (credential === undefined)
      throw new S3AuthError(
        'InvalidAccessKeyId',
        'the access key id does not exist, was revoked or has expired',
        { AWSAccessKeyId: signature.scope.accessId },
      );
    const key = signingKey(credential.secret, signature.scope);
    const canonical = canonicalRequest({ ...request, payloadHash }, signature.headers);
    const text = stringToSign(signature, canonical);
    if (!timingSafeEqualText(sign(key, text), signature.signature))
      throw new S3AuthError(
        'SignatureDoesNotMatch',
        'the signature does not match: check the secret key, and whether a proxy changes the request',
        { StringToSign: text, CanonicalRequest: canonical },
      );
    credentials.recordUse(credential.key);
    if (mode === 'write' && credential.key.access !== 'all')
      throw new S3AuthError('AccessDenied', 'this S3 key may only read');
    return {
      caller: {
        accountId: credential.key.accountId,
        keyId: credential.key.id,
        operator: false,
        fullAccess: false,
        interface: 's3',
        requestId,
      },
      payloadHash,
      signing: { ...signature, key },
      access: {
        credential: signature.scope.accessId,
        expiresAt: credential.key.expiresAt,
        authorize: () => this.#reauthorize(signature.scope.accessId, mode),
      },
    };
  }

  /** Whether the key may still do this; the signature was checked before. */
  async #reauthorize(accessId: string, mode: AccessMode): Promise<S3Key> {
    const found = await this.#deps.credentials.find(accessId);
    if (found === undefined || (mode === 'write' && found.key.access !== 'all'))
      throw new BerthError('unauthenticated', 'the S3 key was revoked or has expired');
    return found.key;
  }

  #fromHeader({ headers }: S3SignedRequest, authorization: string): RequestSignature {
    const fields = new Map(
      authorization
        .slice(SIGV4_ALGORITHM.length)
        .split(',')
        .map((field) => {
          const equals = field.indexOf('=');
          return [field.slice(0, equals).trim(), field.slice(equals + 1).trim()];
        }),
    );
    const date = headers['x-amz-date'];
    const signature = parseSignature(
      fields.get('Credential'),
      fields.get('SignedHeaders'),
      fields.get('Signature'),
      typeof date === 'string' ? date : timeOfDateHeader(headers.date),
    );
    if (signature === undefined)
      throw new S3AuthError(
        'AuthorizationHeaderMalformed',
        'the authorization header must have Credential=ID/DATE/REGION/s3/aws4_request, SignedHeaders ' +
          'and Signature, and x-amz-date must be on that day',
      );
    const now = wallNow(this.#deps.clock);
    if (Math.abs(now - instantOf(signature.time)) > MAX_CLOCK_SKEW_MS)
      throw new S3AuthError(
        'RequestTimeTooSkewed',
        "the request's time is more than an hour from the server's; check the client's clock",
        {
          RequestTime: signature.time,
          ServerTime: new Date(now).toISOString(),
          MaxAllowedSkewMilliseconds: String(MAX_CLOCK_SKEW_MS),
        },
      );
    return signature;
  }

  #fromQuery(parameters: ReadonlyMap<string, string>): RequestSignature {
    const signature =
      parameters.get('X-Amz-Algorithm') === SIGV4_ALGORITHM
        ? parseSignature(
            parameters.get('X-Amz-Credential'),
            parameters.get('X-Amz-SignedHeaders'),
            parameters.get('X-Amz-Signature'),
            parameters.get('X-Amz-Date'),
          )
        : undefined;
    const seconds = Number(parameters.get('X-Amz-Expires') ?? Number.NaN);
    if (signature === undefined)
      throw new S3AuthError(
        'AuthorizationQueryParametersError',
        `a presigned URL needs X-Amz-Algorithm=${SIGV4_ALGORITHM}, X-Amz-Credential, X-Amz-Date, ` +
          'X-Amz-SignedHeaders and X-Amz-Signature',
      );
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_PRESIGNED_SECONDS)
      throw new S3AuthError(
        'AuthorizationQueryParametersError',
        `X-Amz-Expires must be a number of seconds from 1 to ${MAX_PRESIGNED_SECONDS}`,
      );
    const [now, signedAt] = [wallNow(this.#deps.clock), instantOf(signature.time)];
    if (signedAt - now > MAX_CLOCK_SKEW_MS)
      throw new S3AuthError('AccessDenied', 'the presigned URL is not valid yet');
    if (now >= signedAt + seconds * 1000)
      throw new S3AuthError('AccessDenied', 'Request has expired', {
        'X-Amz-Expires': String(seconds),
        Expires: new Date(signedAt + seconds * 1000).toISOString(),
        ServerTime: new Date(now).toISOString(),
      });
    return signature;
  }
}

/** These are part of the signature in another way, or change nothing that matters. */
const MAY_BE_UNSIGNED = new Set(['x-amz-content-sha256', 'x-amz-user-agent', 'x-amz-date']);

function payloadHashOf({ headers }: S3SignedRequest, fallback?: string): string {
  const header = headers['x-amz-content-sha256'];
  const hash = typeof header === 'string' && header !== '' ? header : fallback;
  if (hash === undefined)
    throw new S3AuthError('InvalidRequest', 'the header x-amz-content-sha256 is missing');
  return hash;
}

function parseSignature(
  credential: string | undefined,
  headers: string | undefined,
  signature: string | undefined,
  time: string | undefined,
): RequestSignature | undefined {
  const [accessId, date, region, service, end, ...more] = (credential ?? '').split('/');
  if (!accessId || !date || !region || service !== 's3' || end !== 'aws4_request' || more.length > 0)
    return undefined;
  if (
    !headers ||
    !/^[0-9a-f]{64}$/.test(signature ?? '') ||
    !/^\d{8}T\d{6}Z$/.test(time ?? '') ||
    !(time ?? '').startsWith(date)
  )
    return undefined;
  return {
    scope: { accessId, date, region, service },
    time: time ?? '',
    headers: headers.toLowerCase().split(';'),
    signature: signature ?? '',
  };
}

/** The instant of `20260131T235959Z`. */
function instantOf(time: string): number {
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  return Number.isNaN(at) ? 0 : at;
}

function timeOfDateHeader(date: string | undefined): string | undefined {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? undefined : sigV4Time(at);
}
