import { request as requestOverTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import { request as requestPlain } from '../../support/node-http.ts';
import type { WebhookTarget } from './webhook-target.ts';

/** The answer's body is ignored; this much of it is read, for receivers that need to finish sending it. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const RESPONSE_BODY_GRACE_MS = 1_000;

/**
 * Posts to a target and resolves to the status. It rejects where there is none, or with the reason of the
 * signal. Every request has its own connection: a pooled one might have been opened under other rules.
 * Redirects are answers like any other.
 */
export function postWebhook(
  { url, addresses }: WebhookTarget,
  body: Buffer,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = url.protocol === 'https:' ? requestOverTls : requestPlain;
    const request = start(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': String(body.length) },
      agent: false,
      lookup: pinned(addresses),
      signal,
    });
    let status: number | undefined;
    const settle = (error: Error): void => {
      // Once the status has arrived, later errors do not change it.
      if (status === undefined) reject(signal.aborted ? (signal.reason as Error) : error);
      else resolve(status);
    };
    request.once('response', (response) => {
      status = response.statusCode ?? 0;
      let size = 0;
      const enough = (): void => void response.destroy();
      const grace = setTimeout(enough, RESPONSE_BODY_GRACE_MS);
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_RESPONSE_BYTES) enough();
      });
      response.on('error', settle);
      response.once('close', () => {
        clearTimeout(grace);
        resolve(response.statusCode ?? 0);
      });
    });
    request.on('error', settle);
    // Also where the receiver switches protocols, which is neither an answer nor an error.
    request.once('close', () => settle(new Error('the receiver closed the connection without an answer')));
    request.end(body);
  });
}

/** A lookup function that returns the addresses that were checked. */
function pinned(addresses: WebhookTarget['addresses']): LookupFunction {
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, addresses);
    else callback(null, addresses[0].address, addresses[0].family);
  };
}
