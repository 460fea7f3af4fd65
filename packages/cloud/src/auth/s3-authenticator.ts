import type { IncomingMessage } from 'node:http';
import type { Caller } from '../../domain/caller.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { S3Keys } from '../../resources/keys/s3-keys.ts';
import type { AccessMode } from '../../auth/scopes.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerKey } from '../../auth/bearer.ts';
import type { S3Url } from './s3-url.ts';
import { S3Error } from './s3.errors.ts';
import {
  SIGV4_ALGORITHM,
  canonicalRequest,
  timingSafeEqualText,
  sign,
  signingKey,
  stringToSign,
} from './sigv4.ts';
import type { RequestSignature } from './sigv4.ts';

/** How far a client's clock may be off. */
const MAX_CLOCK_SKEW_MS = 3_600_000;
/** The longest that an address may be signed for, in seconds. */
const MAX_PRESIGNED_SECONDS = 7 * 24 * 3600;
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';

export interface S3AuthenticatorDeps {
  keys: S3Keys;
  authenticator: Authenticator;
  clock: Clock;
}

/** Who asks, and how the request was signed; an API key in the header signs nothing. */
export interface AuthenticatedS3Request {
  caller: Caller;
  /** What was said of the body: its SHA-256, or how it is sent. */
  payloadHash: string;
  signing?: SigningContext;
}

/** What the signatures of the body's pieces go on from. */
export interface SigningContext extends RequestSignature {
  key: Buffer;
}

/** Lets in whoever signed with an S3 key, in the header or in the address, or shows an API key. */
export class S3Authenticator {
  readonly #deps: S3AuthenticatorDeps;

  constructor(deps: S3AuthenticatorDeps) {
    this.#deps = deps;
  }

  async authorize(
    request: IncomingMessage,
    address: S3Url,
    need: AccessMode,
    requestId: string,
  ): Promise<AuthenticatedS3Request> {
    const { authorization } = request.headers;
    if (authorization?.startsWith(SIGV4_ALGORITHM) === true)
      return this.#signed(
        request,
        address,
        need,
        requestId,
        this.#fromHeader(request, authorization),
        bodyHash(request),
      );
    if (address.query.has('X-Amz-Algorithm') || address.query.has('X-Amz-Signature'))
      return this.#signed(
        request,
        address,
        need,
        requestId,
        this.#fromQuery(address),
        bodyHash(request, address.query.get('X-Amz-Content-Sha256') ?? UNSIGNED_PAYLOAD),
      );
    if (authorization === undefined)
      throw new S3Error(
        'AccessDenied',
        'the request is not signed: sign it with an S3 key, made with "berth key create --s3"',
      );
    if (!/^bearer /i.test(authorization))
      throw new S3Error('InvalidRequest', `this way to sign is not known here; sign with ${SIGV4_ALGORITHM}`);
    try {
      const caller = await this.#deps.authenticator.authorize(bearerKey(authorization), {
        interface: 's3',
        scope: 'rest',
        mode: need,
        requestId,
      });
      return { caller, payloadHash: bodyHash(request, UNSIGNED_PAYLOAD) };
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unauthenticated')
        throw new S3Error('InvalidAccessKeyId', error.message);
      throw error;
    }
  }

  async #signed(
    request: IncomingMessage,
    address: S3Url,
    need: AccessMode,
    requestId: string,
    signed: RequestSignature,
    payload: string,
  ): Promise<AuthenticatedS3Request> {
    const { keys } = this.#deps;
    const unsigned = Object.keys(request.headers).filter(
      (name) => name.startsWith('x-amz-') && !UNSIGNED_HEADERS.has(name) && !signed.headers.includes(name),
    );
    if (!signed.headers.includes('host'))
      throw new S3Error('AccessDenied', 'the header "host" must be signed');
    if (unsigned.length > 0)
      throw new S3Error('AccessDenied', `there are headers that were not signed: ${unsigned.join(', ')}`);
    const opened = await keys.findCredential(signed.scope.accessId);
    if (opened === undefined)
      throw new S3Error(
        'InvalidAccessKeyId',
        'the access key id is not known here, or was revoked or has expired',
        { AWSAccessKeyId: signed.scope.accessId },
      );
    const key = signingKey(opened.secret, signed.scope);
    const canonical = canonicalRequest(
      { method: request.method ?? '', url: address, headers: request.headers, payloadHash: payload },
      signed.headers,
    );
    const text = stringToSign(signed, canonical);
    if (!timingSafeEqualText(sign(key, text), signed.signature)) {
      throw new S3Error(
        'SignatureDoesNotMatch',
        'the signature does not match: check the secret key and what lies between client and server',
        { StringToSign: text, CanonicalRequest: canonical },
      );
    }
    keys.recordUse(opened.key);
    if (need === 'write' && opened.key.access !== 'all')
      throw new S3Error('AccessDenied', 'this S3 key may only read');
    return {
      caller: {
        accountId: opened.key.accountId,
        keyId: opened.key.id,
        operator: false,
        fullAccess: false,
        interface: 's3',
        requestId,
      },
      payloadHash: payload,
      signing: { ...signed, key },
    };
  }

  #fromHeader({ headers }: IncomingMessage, authorization: string): RequestSignature {
    const fields = new Map(
      authorization
        .slice(SIGV4_ALGORITHM.length)
        .split(',')
        .map((field) => {
          const mark = field.indexOf('=');
          return [field.slice(0, mark).trim(), field.slice(mark + 1).trim()];
        }),
    );
    const time = headers['x-amz-date'];
    const given = typeof time === 'string' ? time : timeOf(headers.date);
    const signed = parseSignature(
      fields.get('Credential'),
      fields.get('SignedHeaders'),
      fields.get('Signature'),
      given,
    );
    if (signed === undefined)
      throw new S3Error(
        'AuthorizationHeaderMalformed',
        'the authorization header must have Credential=ID/DATE/REGION/s3/aws4_request, SignedHeaders and Signature, and there must be an x-amz-date of that day',
      );
    const at = instantOf(signed.time);
    if (Math.abs(this.#deps.clock.now() - at) > MAX_CLOCK_SKEW_MS) {
      throw new S3Error(
        'RequestTimeTooSkewed',
        'the time of the request is too far from that of the server',
        {
          RequestTime: signed.time,
          ServerTime: new Date(this.#deps.clock.now()).toISOString(),
          MaxAllowedSkewMilliseconds: String(MAX_CLOCK_SKEW_MS),
        },
      );
    }
    return signed;
  }

  #fromQuery({ query }: S3Url): RequestSignature {
    const signed =
      query.get('X-Amz-Algorithm') === SIGV4_ALGORITHM
        ? parseSignature(
            query.get('X-Amz-Credential'),
            query.get('X-Amz-SignedHeaders'),
            query.get('X-Amz-Signature'),
            query.get('X-Amz-Date'),
          )
        : undefined;
    const seconds = Number(query.get('X-Amz-Expires') ?? Number.NaN);
    if (signed === undefined)
      throw new S3Error(
        'AuthorizationQueryParametersError',
        `a signed address needs X-Amz-Algorithm=${SIGV4_ALGORITHM}, X-Amz-Credential, X-Amz-Date, X-Amz-SignedHeaders and X-Amz-Signature`,
      );
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_PRESIGNED_SECONDS)
      throw new S3Error(
        'AuthorizationQueryParametersError',
        `X-Amz-Expires must be a number of seconds from 1 to ${MAX_PRESIGNED_SECONDS}`,
      );
    const [now, at] = [this.#deps.clock.now(), instantOf(signed.time)];
    if (at - now > MAX_CLOCK_SKEW_MS) throw new S3Error('AccessDenied', 'the address is not valid yet');
    if (now >= at + seconds * 1000)
      throw new S3Error('AccessDenied', 'Request has expired', {
        'X-Amz-Expires': String(seconds),
        Expires: new Date(at + seconds * 1000).toISOString(),
        ServerTime: new Date(now).toISOString(),
      });
    return signed;
  }
}

/** What goes into the signature in another way, or says nothing that matters. */
const UNSIGNED_HEADERS = new Set(['x-amz-content-sha256', 'x-amz-user-agent', 'x-amz-date']);

function bodyHash({ headers }: IncomingMessage, otherwise?: string): string {
  const said = headers['x-amz-content-sha256'];
  const hash = typeof said === 'string' && said !== '' ? said : otherwise;
  if (hash === undefined) throw new S3Error('InvalidRequest', 'the header x-amz-content-sha256 is missing');
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
    scope: { accessId, date, region },
    time: time ?? '',
    headers: headers.toLowerCase().split(';'),
    signature: signature ?? '',
  };
}

/** Of `20260131T235959Z`. */
function instantOf(time: string): number {
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  return Number.isNaN(at) ? 0 : at;
}

function timeOf(date: string | undefined): string | undefined {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? undefined : new Date(at).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
}
