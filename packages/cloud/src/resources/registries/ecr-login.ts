import { sha256Hex, signHeaders } from '../../auth/sigv4.ts';
import { type Clock, wallNow } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { RegistryCredentials } from './registries.ts';

const SERVICE = 'ecr';
const TARGET = 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken';
const CONTENT_TYPE = 'application/x-amz-json-1.1';
const REQUEST_TIMEOUT_MS = 10_000;
/** A login is valid for twelve hours; one that is about to expire is not used. */
const LOGIN_CACHE_MS = 6 * 3_600_000;

/** The AWS credentials of this server. */
export interface AwsIdentity {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
}

export interface EcrLoginOptions {
  identity: AwsIdentity | undefined;
  /** The URL of ECR; empty for Amazon's. */
  endpoint: string;
  clock: Clock;
}

/**
 * Gets logins for ECR registries with the AWS credentials of this server. The owners of the registries have
 * given it access.
 */
export class EcrLogin {
  readonly #options: EcrLoginOptions;
  readonly #cache = new Map<string, { credentials: RegistryCredentials; until: number }>();

  constructor(options: EcrLoginOptions) {
    this.#options = options;
  }

  async credentialsFor({
    awsUser,
    awsRegion,
  }: {
    awsUser: string;
    awsRegion: string;
  }): Promise<RegistryCredentials> {
    const key = `${awsRegion} ${awsUser}`;
    const now = wallNow(this.#options.clock);
    const cached = this.#cache.get(key);
    if (cached !== undefined && cached.until > now) return cached.credentials;
    const credentials = await this.#request(awsUser, awsRegion, now);
    this.#cache.set(key, { credentials, until: now + LOGIN_CACHE_MS });
    return credentials;
  }

  async #request(awsUser: string, awsRegion: string, now: number): Promise<RegistryCredentials> {
    const { identity, endpoint } = this.#options;
    if (identity === undefined)
      throw new BerthError(
        'unavailable',
        'its registry is delegated, but this server has no AWS credentials: start Berth with ' +
          'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      );
    const url = new URL(
      endpoint === ''
        ? `https://api.ecr.${awsRegion}.amazonaws.com${awsRegion.startsWith('cn-') ? '.cn' : ''}/`
        : endpoint,
    );
    const body = JSON.stringify({ registryIds: [awsUser] });
    try {
      const response = await fetch(url, {
        method: 'POST',
        body,
        headers: sigV4Headers({ url, body, region: awsRegion, identity, now }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      const answer = (await response.json()) as {
        authorizationData?: { authorizationToken?: string }[];
        message?: string;
        __type?: string;
      };
      const [username, ...password] = Buffer.from(
        answer.authorizationData?.[0]?.authorizationToken ?? '',
        'base64',
      )
        .toString()
        .split(':');
      if (!response.ok || username === undefined || password.length === 0)
        throw new Error(answer.message ?? answer.__type ?? `status ${response.status}`);
      return { username, password: password.join(':') };
    } catch (error) {
      throw new BerthError(
        'unavailable',
        `its registry is delegated, but ECR gives no login for ${awsUser} in ${awsRegion}: ${(error as Error).message}`,
        { cause: error },
      );
    }
  }
}

export function awsIdentityFromEnv(env: NodeJS.ProcessEnv): AwsIdentity | undefined {
  const [accessKeyId, secretAccessKey] = [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY']];
  return accessKeyId === undefined || secretAccessKey === undefined
    ? undefined
    : { accessKeyId, secretAccessKey, sessionToken: env['AWS_SESSION_TOKEN'] };
}

/** The headers of a signed request to ECR. */
export function sigV4Headers({
  url,
  body,
  region,
  identity: { accessKeyId, secretAccessKey, sessionToken },
  now,
}: {
  url: URL;
  body: string;
  region: string;
  identity: AwsIdentity;
  now: number;
}): Record<string, string> {
  return signHeaders(
    {
      method: 'POST',
      path: url.pathname,
      query: [...url.searchParams],
      headers: {
        'content-type': CONTENT_TYPE,
        host: url.host,
        ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
        'x-amz-target': TARGET,
      },
      payloadHash: sha256Hex(body),
    },
    { accessId: accessKeyId, secret: secretAccessKey, region, service: SERVICE },
    now,
  );
}
