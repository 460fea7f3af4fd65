import { createHmac } from 'node:crypto';

const LENGTH = 24;

/** The same for a pod at every start, and known to nobody who does not see into it. */
export function jupyterPassword(masterKey: Buffer, podId: string): string {
  return createHmac('sha256', masterKey).update(`jupyter ${podId}`).digest('base64url').slice(0, LENGTH);
}
