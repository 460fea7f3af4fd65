import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { FloodPlan } from './flood-plan.ts';
import { Flooder } from './flooder.ts';
import type { FloodRequest } from './flooder.ts';

const CONNECTIONS = 8;
const UPLOAD_BYTES = 20_000_000;
/** The disk of a laptop is not to be filled: the same objects are written again. */
const OBJECTS = 4;

/** Uploads as much as it can. */
export function uploadFlooder(plan: FloodPlan): Flooder {
  const body = Buffer.alloc(UPLOAD_BYTES, 'x');
  return new Flooder(
    Array.from({ length: CONNECTIONS }, (_, index) => uploader(plan, `o-${index % OBJECTS}`, body)),
  );
}

function uploader({ url, flooder }: FloodPlan, key: string, body: Buffer): FloodRequest {
  const client = new S3Client({
    endpoint: `${url}/s3`,
    region: 'LOCAL-1',
    forcePathStyle: true,
    credentials: { accessKeyId: flooder.s3.accessId, secretAccessKey: flooder.s3.secret },
    maxAttempts: 1,
  });
  return async () => {
    try {
      await client.send(new PutObjectCommand({ Bucket: flooder.volume, Key: key, Body: body }));
      return { answer: 'upload 200' };
    } catch (error) {
      const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
      return { answer: `upload ${$metadata?.httpStatusCode ?? 'broken off'}`, refused: true };
    }
  };
}
