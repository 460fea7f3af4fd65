import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { WebhookTarget } from './webhook-target.ts';

/** Nobody reads the answer's body; so much of it is taken in, for receivers that want to get it off their hands. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const RESPONSE_BODY_GRACE_MS = 1_000;

/**
 * Posts to a target and answers the status. It rejects where there is none, or with the reason
 * of the signal. Every request has a connection of its own: none is ever taken over that was
 * opened by somebody with other rules. Redirects are an answer like any other.
 */
export function postWebhook(
  { url, addresses }: WebhookTarget,
  body: Buffer,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const { request: start } = url.protocol === 'https:' ? https : http;
    const request = start(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': String(body.length) },
      agent: false,
      lookup: pinned(addresses),
      signal,
    });
    let status: number | undefined;
    const settle = (error: Error): void => {
      // Once the status has come, nothing that goes wrong changes it.
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
    // Also where the receiver wants to switch protocols, which is neither an answer nor an error.
    request.once('close', () => settle(new Error('the receiver closed the connection without an answer')));
    request.end(body);
  });
}

/** Answers every question for the name with the addresses that were checked. */
function pinned(addresses: WebhookTarget['addresses']): LookupFunction {
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, addresses);
    else callback(null, addresses[0].address, addresses[0].family);
  };
}
