import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { HttpConnection } from '../support/http-connection.ts';
import type { FloodPlan } from './flood-plan.ts';

const JOB_CONNECTIONS = 64;
const LARGE_JOB_CONNECTIONS = 4;
const UPLOAD_CONNECTIONS = 8;
const LARGE_JOB_BYTES = 5_000_000;
const UPLOAD_BYTES = 20_000_000;
/** The disk of a laptop is not to be filled: the same objects are written again. */
const OBJECTS = 4;

/** One account that sends as much as it can, and asks again at once if it is refused. */
export class Flooder {
  readonly #plan: FloodPlan;
  readonly #answers = new Map<string, number>();

  constructor(plan: FloodPlan) {
    this.#plan = plan;
  }

  start(): void {
    const small = JSON.stringify({ input: { text: 'x'.repeat(1000) } });
    const large = JSON.stringify({ input: 'x'.repeat(LARGE_JOB_BYTES) });
    for (let index = 0; index < JOB_CONNECTIONS; index += 1) void this.#sendJobs('job', small);
    for (let index = 0; index < LARGE_JOB_CONNECTIONS; index += 1) void this.#sendJobs('large job', large);
    for (let index = 0; index < UPLOAD_CONNECTIONS; index += 1) void this.#upload(index);
  }

  toString(): string {
    return [...this.#answers].map(([answer, times]) => `${times} times ${answer}`).join(', ');
  }

  async #sendJobs(what: string, body: string): Promise<void> {
    const { url, flooder } = this.#plan;
    for (;;) {
      const connection = new HttpConnection(url, `Bearer ${flooder.key}`);
      try {
        for (;;) {
          const { status } = await connection.request('POST', `/v2/${flooder.endpointId}/run`, body);
          this.#count(`${what} ${status}`);
        }
      } catch {
        this.#count(`${what} broken off`);
        connection.close();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
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
        this.#count('upload 200');
      } catch (error) {
        const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
        this.#count(`upload ${$metadata?.httpStatusCode ?? 'broken off'}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  #count(answer: string): void {
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1);
  }
}
