import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { nextTurn } from '../pause.ts';

const PROTOCOL = 'berth-worker/1';

/** The answer to the wish for a channel. */
export type Upgrade =
  | { kind: 'opened'; socket: Socket; head: Buffer; takesBack: boolean; keepsChunks: boolean; answers: boolean }
  /** The server answered something else, or nothing that can be understood: it does not offer the channel. */
  | { kind: 'refused'; why: string; lasting: boolean }
  /** There is no server now. */
  | { kind: 'unreachable'; why: string };

/** Errors that say that nobody is there at all. */
const NOBODY = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);

export function upgrade(address: string, apiKey: string, withinMs: number, signal: AbortSignal): Promise<Upgrade> {
  return new Promise((resolve) => {
    const request = (address.startsWith('https:') ? https : http).request(address, {
      agent: false,
      headers: { Connection: 'Upgrade', Upgrade: PROTOCOL, ...(apiKey === '' ? {} : { Authorization: apiKey }) },
    });
    let settled = false;
    const settle = (outcome: Upgrade): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve(outcome);
      if (outcome.kind !== 'opened') request.destroy();
    };
    const abort = (): void => settle({ kind: 'unreachable', why: 'no longer wanted' });
    const timer = setTimeout(() => {
      // An answer that is here and only not read yet counts.
      void nextTurn().then(nextTurn).then(() => settle({ kind: 'refused', why: `no answer within ${withinMs / 1000} s`, lasting: false }));
    }, withinMs);
    signal.addEventListener('abort', abort, { once: true });
    request.on('upgrade', (response, socket, head) => {
      if (settled || response.headers.upgrade?.toLowerCase() !== PROTOCOL) {
        socket.destroy();
        settle({ kind: 'refused', why: `the server offers ${response.headers.upgrade ?? 'nothing'} instead of ${PROTOCOL}`, lasting: true });
      } else settle({ kind: 'opened', socket, head, takesBack: response.headers['berth-takes-back'] !== undefined, keepsChunks: response.headers['berth-keeps-chunks'] !== undefined, answers: response.headers['berth-answers'] !== undefined });
    });
    request.on('response', ({ statusCode = 0 }) => settle({ kind: 'refused', why: `the server answered ${statusCode}`, lasting: statusCode < 500 && statusCode !== 429 }));
    request.on('error', (error: NodeJS.ErrnoException) => {
      settle(NOBODY.has(error.code ?? '') ? { kind: 'unreachable', why: error.message || String(error.code) } : { kind: 'refused', why: error.message, lasting: false });
    });
    request.end();
    if (signal.aborted) abort();
  });
}
