import { bearerKey } from '../../auth/bearer.ts';
import type { Request } from '../raw-http.ts';

/** What a client offers to speak; the answer is always the first of these. */
export const TERMINAL_PROTOCOL = 'berth.terminal';
/** A browser can name protocols, and nothing else of the head: a key may be one of them. */
const KEY_PROTOCOL = 'berth.key.';

export function offeredProtocols({ headers }: Pick<Request, 'headers'>): string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** The key of whoever asks for a terminal: in a header, in the address, or among the protocols. */
export function terminalKey(request: Pick<Request, 'headers'>, query: URLSearchParams): string | undefined {
  const offered = offeredProtocols(request)
    .find((name) => name.startsWith(KEY_PROTOCOL))
    ?.slice(KEY_PROTOCOL.length);
  return bearerKey(request.headers.authorization) ?? query.get('api_key') ?? offered;
}
