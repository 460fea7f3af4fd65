import { S3Client } from '@aws-sdk/client-s3';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { ApiClient } from './api-client.ts';

export interface S3Key {
  accessId: string;
  secret: string;
}

export async function createS3Key(account: ApiClient, fields: object = {}): Promise<S3Key> {
  const { status, body, text } = await account.call<{ accessId: string; secret: string }>(
    'POST',
    '/v2/account/s3-keys',
    { name: 'test', ...fields },
  );
  if (status !== 201) throw new Error(`no S3 key: ${text}`);
  return { accessId: body.accessId, secret: body.secret };
}

export async function createVolume(account: ApiClient, fields: object = {}): Promise<string> {
  const { status, body, text } = await account.call<{ id: string }>('POST', '/v2/network-volumes', {
    name: 'data',
    size: 10,
    dataCenter: 'LOCAL-1',
    ...fields,
  });
  if (status !== 201) throw new Error(`no volume: ${text}`);
  return body.id;
}

/** The client that people use, as its documentation tells to set it up. */
export function createS3Client(
  url: string,
  { accessId, secret }: S3Key,
  settings: S3ClientConfig = {},
): S3Client {
  return new S3Client({
    endpoint: `${url}/s3`,
    region: 'LOCAL-1',
    forcePathStyle: true,
    credentials: { accessKeyId: accessId, secretAccessKey: secret },
    maxAttempts: 1,
    ...settings,
  });
}
