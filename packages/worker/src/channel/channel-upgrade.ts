import type { IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { nextEventLoopTurn } from '../delay.ts';
import { http } from '../http/node-http.ts';

const PROTOCOL = 'berth-worker/1';

/** Features that earlier servers do not have. */
export interface ServerFeatures {
  /** It accepts returned jobs that were not started, so jobs may be prefetched. */
  acceptsReturns: boolean;
  /** It acknowledges numbered chunks. */
  acknowledgesChunks: boolean;
  /** It answers heartbeats. */
  answersHeartbeats: boolean;
}

export interface OpenedUpgrade {
  kind: 'opened';
  socket: Socket;
  head: Buffer;
  features: ServerFeatures;
}

/** The server gave another answer, or one that cannot be parsed: it does not offer the channel. */
export interface RefusedUpgrade {
  kind: 'refused';
  why: string;
  permanent: boolean;
}

/** The result of the upgrade request. Unreachable: no server answers now. */
export type UpgradeOutcome = OpenedUpgrade | RefusedUpgrade | { kind: 'unreachable'; why: string };

/** Connection errors that mean that no server is listening. */
const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
]);

export function requestUpgrade(
  address: string,
  apiKey: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<UpgradeOutcome> {
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
    const settle = (outcome: UpgradeOutcome): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve(outcome);
      if (outcome.kind !== 'opened') request.destroy();
    };
    const abort = (): void => settle({ kind: 'unreachable', why: 'no longer wanted' });
    const timer = setTimeout(() => {
      // An answer that has arrived but is not read yet counts.
      void nextEventLoopTurn()
        .then(nextEventLoopTurn)
        .then(() =>
          settle({ kind: 'refused', why: `no answer within ${withinMs / 1000} s`, permanent: false }),
        );
    }, withinMs);
    signal.addEventListener('abort', abort, { once: true });
    request.on('upgrade', (response, socket, head) => {
      if (settled || response.headers.upgrade?.toLowerCase() !== PROTOCOL) {
        socket.destroy();
        settle({
          kind: 'refused',
          why: `the server offers ${response.headers.upgrade ?? 'nothing'} instead of ${PROTOCOL}`,
          permanent: true,
        });
      } else settle({ kind: 'opened', socket, head, features: featuresOf(response.headers) });
    });
    request.on('response', ({ statusCode = 0 }) =>
      settle({
        kind: 'refused',
        why: `the server answered ${statusCode}`,
        permanent: statusCode < 500 && statusCode !== 429,
      }),
    );
    request.on('error', (error: NodeJS.ErrnoException) => {
      settle(
        UNREACHABLE_CODES.has(error.code ?? '')
          ? { kind: 'unreachable', why: error.message || String(error.code) }
          : { kind: 'refused', why: error.message, permanent: false },
      );
    });
    request.end();
    if (signal.aborted) abort();
  });
}

function featuresOf(headers: IncomingHttpHeaders): ServerFeatures {
  const has = (name: string): boolean => headers[name] !== undefined;
  return {
    acceptsReturns: has('berth-takes-back'),
    acknowledgesChunks: has('berth-keeps-chunks'),
    answersHeartbeats: has('berth-answers'),
  };
}
