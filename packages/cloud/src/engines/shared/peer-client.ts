import type { IncomingMessage } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { createInterface } from 'node:readline';
import type { Duplex, Readable } from 'node:stream';
import type { LogLine } from '../../domain/log-line.ts';
import { request } from '../../support/node-http.ts';
import { BerthError } from '../../support/errors.ts';
import type { ErrorCode } from '../../support/errors.ts';
import { PEER_HEADER, type PeerSignature } from '../../support/peer-signature.ts';

export const PEER_PROTOCOL = 'berth-peer/1';
const CALL_TIMEOUT_MS = 10_000;

/** `engine` is its kind, or `kubernetes:` and the data center of the cluster. */
export function peerPath(engine: string, operation: string, args: readonly unknown[]): string {
  return `/internal/engines/${engine}/${operation}?args=${encodeURIComponent(JSON.stringify(args))}`;
}

interface PeerCall {
  address: string;
  path: string;
  signature: PeerSignature;
  body?: Readable;
  /** Silence that is not an answer. Undefined waits. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  upgrade?: boolean;
}

/**
 * One request to another server of the installation. Everything it carries is in the signed path, apart from
 * files.
 */
function send({ address, path, signature, body, timeoutMs, signal, upgrade }: PeerCall): {
  response: Promise<IncomingMessage>;
  upgraded: Promise<Duplex>;
} {
  const url = new URL(path, address);
  const outgoing = (url.protocol === 'https:' ? requestOverTls : request)(url, {
    method: 'POST',
    headers: {
      [PEER_HEADER]: signature.sign('POST', path),
      ...(upgrade === true && { connection: 'upgrade', upgrade: PEER_PROTOCOL }),
    },
    ...(signal !== undefined && { signal }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
  });
  const response = Promise.withResolvers<IncomingMessage>();
  const upgraded = Promise.withResolvers<Duplex>();
  const fail = (error: unknown): void => {
    const failure = new BerthError(
      'unavailable',
      `the server at ${address}, where this runs, does not answer; try again`,
      { cause: error },
    );
    response.reject(failure);
    upgraded.reject(failure);
  };
  outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
  outgoing.on('error', fail);
  outgoing.on('upgrade', (_, socket, head) => {
    if (head.length > 0) socket.unshift(head);
    upgraded.resolve(socket);
  });
  outgoing.on('response', (answer) => {
    response.resolve(answer);
    if (upgrade === true) readFailure(answer).then(upgraded.reject, fail);
  });
  response.promise.catch(() => undefined);
  upgraded.promise.catch(() => undefined);
  if (body === undefined) outgoing.end();
  else body.on('error', (error) => outgoing.destroy(error)).pipe(outgoing);
  return { response: response.promise, upgraded: upgraded.promise };
}

/** The answer as JSON; undefined where the server answered nothing. */
export async function callPeer<T>(call: Omit<PeerCall, 'upgrade'>): Promise<T> {
  const answer = await streamFromPeer({ timeoutMs: CALL_TIMEOUT_MS, ...call });
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += String(piece);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

export async function streamFromPeer(call: Omit<PeerCall, 'upgrade'>): Promise<IncomingMessage> {
  const answer = await send(call).response;
  if (answer.statusCode !== 200) throw await readFailure(answer);
  return answer;
}

/** The lines of a log, as they come. */
export async function* logsFromPeer(
  call: Omit<PeerCall, 'upgrade' | 'body'>,
): AsyncGenerator<LogLine, void, undefined> {
  const answer = await streamFromPeer(call);
  try {
    for await (const line of createInterface({ input: answer })) yield JSON.parse(line) as LogLine;
  } catch (error) {
    if (call.signal?.aborted !== true) throw error;
  } finally {
    answer.destroy();
  }
}

export function connectToPeer(call: Omit<PeerCall, 'upgrade' | 'body'>): Promise<Duplex> {
  return send({ ...call, upgrade: true }).upgraded;
}

/** What went wrong at the other server is said here in the same words. */
async function readFailure(answer: IncomingMessage): Promise<BerthError> {
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += String(piece);
  try {
    const { code, message } = JSON.parse(text) as { code: ErrorCode; message: string };
    return new BerthError(code, message);
  } catch {
    return new BerthError('unavailable', `another server answered ${answer.statusCode}`);
  }
}
