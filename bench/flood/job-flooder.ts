import { HttpConnection } from '../support/http-connection.ts';
import type { FloodPlan } from './flood-plan.ts';
import { Flooder } from './flooder.ts';
import type { FloodRequest } from './flooder.ts';

const CONNECTIONS = 64;
const LARGE_CONNECTIONS = 4;
const LARGE_BYTES = 5_000_000;

/** Sends as many jobs as it can. */
export function jobFlooder(plan: FloodPlan): Flooder {
  const small = JSON.stringify({ input: { text: 'x'.repeat(1000) } });
  const large = JSON.stringify({ input: 'x'.repeat(LARGE_BYTES) });
  return new Flooder([
    ...Array.from({ length: CONNECTIONS }, () => submitter(plan, 'job', small)),
    ...Array.from({ length: LARGE_CONNECTIONS }, () => submitter(plan, 'large job', large)),
  ]);
}

function submitter({ url, flooder }: FloodPlan, what: string, body: string): FloodRequest {
  let connection: HttpConnection | undefined;
  return async () => {
    connection ??= new HttpConnection(url, `Bearer ${flooder.key}`);
    try {
      const { status } = await connection.request('POST', `/v2/${flooder.endpointId}/run`, body);
      return { answer: `${what} ${status}` };
    } catch {
      connection.close();
      connection = undefined;
      return { answer: `${what} broken off`, refused: true };
    }
  };
}
