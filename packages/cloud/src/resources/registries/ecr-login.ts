import { createHash, createHmac } from 'node:crypto';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { RegistryCredentials } from './registries.ts';

const SERVICE = 'ecr';
const TARGET = 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken';
const CONTENT_TYPE = 'application/x-amz-json-1.1';
const REQUEST_TIMEOUT_MS = 10_000;
/** A login is good for twelve hours; one that is about to end is not used. */
const LOGIN_CACHE_MS = 6 * 3_600_000;

/** The AWS identity that this server has of its own. */
export interface AwsIdentity {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
}

export interface EcrLoginOptions {
  identity: AwsIdentity | undefined;
  /** Where ECR is asked instead of at Amazon; empty is Amazon. */
  endpoint: string;
  clock: Clock;
}

/** Gets logins for ECR registries in the name of this server, whose AWS identity their owners have let in. */
export class EcrLogin {
  readonly #parts: EcrLoginOptions;
  readonly #kept = new Map<string, { credentials: RegistryCredentials; until: number }>();

  constructor(parts: EcrLoginOptions) {
    this.#parts = parts;
  }

  async credentialsFor({
    awsUser,
    awsRegion,
  }: {
    awsUser: string;
    awsRegion: string;
  }): Promise<RegistryCredentials> {
    const key = `${awsRegion} ${awsUser}`;
    const now = this.#parts.clock.now();
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.until > now) return kept.credentials;
    const credentials = await this.#ask(awsUser, awsRegion, now);
    this.#kept.set(key, { credentials, until: now + LOGIN_CACHE_MS });
    return credentials;
  }

  async #ask(awsUser: string, awsRegion: string, now: number): Promise<RegistryCredentials> {
    const { identity, endpoint } = this.#parts;
    if (identity === undefined)
      throw new BerthError(
        'unavailable',
        'its registry is delegated, and this server has no AWS identity to log in with: start Berth with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
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

/** The headers of a request in AWS's signature, version 4. */
export function sigV4Headers({
  url,
  body,
  region,
  identity,
  now,
}: {
  url: URL;
  body: string;
  region: string;
  identity: AwsIdentity;
  now: number;
}): Record<string, string> {
  const instant = new Date(now).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
  const day = instant.slice(0, 8);
  const headers: Record<string, string> = {
    'content-type': CONTENT_TYPE,
    host: url.host,
    'x-amz-date': instant,
    ...(identity.sessionToken !== undefined && { 'x-amz-security-token': identity.sessionToken }),
    'x-amz-target': TARGET,
  };
  const names = Object.keys(headers).sort().join(';');
  const request = [
    'POST',
    url.pathname,
    '',
    ...Object.keys(headers)
      .sort()
      .map((name) => `${name}:${headers[name]}`),
    '',
    names,
    sha256(body),
  ].join('\n');
  const scope = `${day}/${region}/${SERVICE}/aws4_request`;
  const key = [day, region, SERVICE, 'aws4_request'].reduce(
    (secret: string | Buffer, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${identity.secretAccessKey}`,
  );
  const signature = createHmac('sha256', key)
    .update(['AWS4-HMAC-SHA256', instant, scope, sha256(request)].join('\n'))
    .digest('hex');
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${identity.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
