import { createHmac } from 'node:crypto';

const LENGTH = 24;

/** The same at every start of a pod. Only the pod and its owner know it. */
export function jupyterPassword(masterKey: Buffer, podId: string): string {
  return createHmac('sha256', masterKey).update(`jupyter ${podId}`).digest('base64url').slice(0, LENGTH);
}
