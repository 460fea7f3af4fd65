import { bearerKey } from '../../auth/bearer.ts';
import type { Request } from '../raw-http.ts';

/** The subprotocol of terminals. */
export const TERMINAL_PROTOCOL = 'berth.terminal';
/** A browser can set only the subprotocols of a WebSocket request, so a key may be one of them. */
const KEY_PROTOCOL = 'berth.key.';

export function offeredProtocols({ headers }: Pick<Request, 'headers'>): string[] {
  return (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** The key of a client: in a header, in the query, or among the subprotocols. */
export function terminalKey(request: Pick<Request, 'headers'>, query: URLSearchParams): string | undefined {
  const offered = offeredProtocols(request)
    .find((name) => name.startsWith(KEY_PROTOCOL))
    ?.slice(KEY_PROTOCOL.length);
  return bearerKey(request.headers.authorization) ?? query.get('api_key') ?? offered;
}
