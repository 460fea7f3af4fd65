import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { nextTurn } from '../pause.ts';

const PROTOCOL = 'berth-worker/1';

/** What a server does that earlier ones did not. */
export interface ServerTerms {
  /** It takes jobs back that were not begun, so some may be taken ahead. */
  takesBack: boolean;
  /** It acknowledges chunks that have a number. */
  keepsChunks: boolean;
  /** It answers heartbeats. */
  answers: boolean;
}

export interface OpenedUpgrade {
  kind: 'opened';
  socket: Socket;
  head: Buffer;
  terms: ServerTerms;
}

/** The server answered something else, or nothing that can be understood: it does not offer the channel. */
export interface RefusedUpgrade {
  kind: 'refused';
  why: string;
  lasting: boolean;
}

/** The answer to the wish for a channel. Unreachable: there is no server now. */
export type Upgrade = OpenedUpgrade | RefusedUpgrade | { kind: 'unreachable'; why: string };

/** Errors that say that nobody is there at all. */
const NOBODY = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
]);

export function upgrade(
  address: string,
  apiKey: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<Upgrade> {
  return new Promise((resolve) => {
    const request = (address.startsWith('https:') ? https : http).request(address, {
      agent: false,
      headers: {
        Connection: 'Upgrade',
        Upgrade: PROTOCOL,
        ...(apiKey === '' ? {} : { Authorization: apiKey }),
      },
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
      void nextTurn()
        .then(nextTurn)
        .then(() =>
          settle({ kind: 'refused', why: `no answer within ${withinMs / 1000} s`, lasting: false }),
        );
    }, withinMs);
    signal.addEventListener('abort', abort, { once: true });
    request.on('upgrade', (response, socket, head) => {
      if (settled || response.headers.upgrade?.toLowerCase() !== PROTOCOL) {
        socket.destroy();
        settle({
          kind: 'refused',
          why: `the server offers ${response.headers.upgrade ?? 'nothing'} instead of ${PROTOCOL}`,
          lasting: true,
        });
      } else settle({ kind: 'opened', socket, head, terms: termsOf(response.headers) });
    });
    request.on('response', ({ statusCode = 0 }) =>
      settle({
        kind: 'refused',
        why: `the server answered ${statusCode}`,
        lasting: statusCode < 500 && statusCode !== 429,
      }),
    );
    request.on('error', (error: NodeJS.ErrnoException) => {
      settle(
        NOBODY.has(error.code ?? '')
          ? { kind: 'unreachable', why: error.message || String(error.code) }
          : { kind: 'refused', why: error.message, lasting: false },
      );
    });
    request.end();
    if (signal.aborted) abort();
  });
}

function termsOf(headers: http.IncomingHttpHeaders): ServerTerms {
  const says = (name: string): boolean => headers[name] !== undefined;
  return {
    takesBack: says('berth-takes-back'),
    keepsChunks: says('berth-keeps-chunks'),
    answers: says('berth-answers'),
  };
}
