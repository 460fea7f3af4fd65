// The thread of large-body-parser.ts.
import { parentPort } from 'node:worker_threads';
import { BerthError } from '../support/errors.ts';
import { parseJobRequest } from './jobs/job-request.ts';
import type { LargeBodyReply, LargeBodyTask } from './large-body-parser.ts';
import { parseJobDone } from './workers/worker-posts.ts';

parentPort?.on('message', ({ kind, text }: LargeBodyTask) => parentPort?.postMessage(reply(kind, text)));

function reply(kind: LargeBodyTask['kind'], text: string): LargeBodyReply {
  try {
    return { value: kind === 'request' ? parseJobRequest(text) : parseJobDone(text) };
  } catch (error) {
    if (error instanceof BerthError) return { code: error.code, message: error.message };
    return { code: 'internal', message: String(error) };
  }
}
