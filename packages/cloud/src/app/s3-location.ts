import type { S3Location } from '../resources/object-storage/s3-request.ts';
import { awsIdentityFromEnv } from '../resources/registries/ecr-login.ts';
import { wallNow } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { ConfigError } from '../support/config/config-error.ts';

export interface S3Prefix {
  location: S3Location;
  /** Without slashes at its end; may be empty. */
  prefix: string;
}

/** The bucket of a setting such as `s3://bucket/prefix`; undefined where it is not one. */
export function s3Prefix(
  setting: string,
  { value, s3Endpoint, s3Region }: { value: string; s3Endpoint: string; s3Region: string },
  clock: Clock,
): S3Prefix | undefined {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(value) ?? [];
  if (bucket === undefined) return undefined;
  const identity = awsIdentityFromEnv(process.env);
  if (identity === undefined)
    throw new ConfigError([
      `${setting} is an S3 bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of Berth`,
    ]);
  const endpoint = s3Endpoint || `https://s3.${s3Region}.amazonaws.com`;
  const location = { endpoint, region: s3Region, bucket, identity, now: () => wallNow(clock) };
  return { location, prefix: prefix.replace(/\/+$/, '') };
}
