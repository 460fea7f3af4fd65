import { setTimeout as pause } from 'node:timers/promises';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AnswerCounts } from './answer-counts.ts';
import type { FloodPlan } from './flood-plan.ts';

const CONNECTIONS = 8;
const UPLOAD_BYTES = 20_000_000;
/** The disk of a laptop is not to be filled: the same objects are written again. */
const OBJECTS = 4;
const RETRY_MS = 10;

/** One account that uploads as much as it can, and tries again at once if it is refused. */
export class UploadFlooder {
  readonly #plan: FloodPlan;
  readonly #answers = new AnswerCounts();

  constructor(plan: FloodPlan) {
    this.#plan = plan;
  }

  start(): void {
    for (let index = 0; index < CONNECTIONS; index += 1) void this.#upload(index);
  }

  toString(): string {
    return this.#answers.toString();
  }

  async #upload(index: number): Promise<void> {
    const { url, flooder } = this.#plan;
    const client = new S3Client({
      endpoint: `${url}/s3`,
      region: 'LOCAL-1',
      forcePathStyle: true,
      credentials: { accessKeyId: flooder.s3.accessId, secretAccessKey: flooder.s3.secret },
      maxAttempts: 1,
    });
    const body = Buffer.alloc(UPLOAD_BYTES, 'x');
    for (;;) {
      const put = new PutObjectCommand({ Bucket: flooder.volume, Key: `o-${index % OBJECTS}`, Body: body });
      try {
        await client.send(put);
        this.#answers.add('upload 200');
      } catch (error) {
        const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
        this.#answers.add(`upload ${$metadata?.httpStatusCode ?? 'broken off'}`);
        await pause(RETRY_MS);
      }
    }
  }
}
