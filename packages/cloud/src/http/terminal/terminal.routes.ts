import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket, WebSocketServer } from 'ws';
import type { Caller } from '../../domain/caller.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { OpenAccess, OpenAccesses } from '../../auth/open-access.ts';
import type { OpenTerminal, Terminals } from '../../resources/terminals/terminals.ts';
import { BerthError } from '../../support/errors.ts';
import { admitRequest } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import type { Request } from '../raw-http.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { toProblem, PROBLEM_MEDIA_TYPE } from '../rest-v2/rest-v2.errors.ts';
import { parseTerminalUrl } from './terminal-url.ts';
import type { TerminalUrl } from './terminal-url.ts';
import { offeredProtocols, TERMINAL_PROTOCOL, terminalKey } from './terminal-key.ts';
import { terminateCommand, TerminalSession } from './terminal-session.ts';
import { parseTerminalOptions } from './terminal-options.ts';

/** The largest frame of a client: more than anyone pastes. */
const MAX_FRAME_BYTES = 1024 * 1024;

export interface TerminalRoutesDeps {
  terminals: Terminals;
  authenticator: Authenticator;
  openAccesses: OpenAccesses;
  log: FastifyBaseLogger;
  /** How often a connection is pinged. */
  pingMs?: number;
}

/** Terminals in pods and workers, over WebSockets. docs/terminal.md describes the protocol. */
export class TerminalRoutes {
  readonly #deps: TerminalRoutesDeps;
  readonly #sessions = new Set<TerminalSession>();
  #server: Promise<WebSocketServer> | undefined;

  constructor(deps: TerminalRoutesDeps) {
    this.#deps = deps;
  }

  match(url: string): TerminalUrl | undefined {
    return parseTerminalUrl(url);
  }

  async upgrade(request: Request, socket: Duplex, head: Buffer, url: TerminalUrl): Promise<void> {
    const { log, pingMs, openAccesses } = this.#deps;
    const requestId = requestIdOf(request);
    const key = terminalKey(request, url.query);
    const authorize = (): Promise<Caller> =>
      this.#deps.authenticator.authorize(key, {
        interface: 'rest-v2',
        scope: 'rest',
        mode: 'write',
        requestId,
      });
    try {
      checkHandshake(request);
      const caller = await authorize();
      admitRequest(request.socket, caller.accountId);
      const server = await this.#load();
      const opened = await this.#open(caller, url);
      if (socket.destroyed) return terminateCommand(opened.execution);
      const accept = (webSocket: WebSocket): void => {
        const session = new TerminalSession({
          webSocket,
          opened,
          log,
          ...(pingMs !== undefined && { pingMs }),
          onClose: () => {
            unwatch();
            this.#sessions.delete(session);
          },
        });
        const access: OpenAccess = {
          credential: key ?? '',
          expiresAt: caller.expiresAt ?? null,
          authorize,
          revoke: () => session.keyRevoked(),
        };
        const unwatch = openAccesses.watch(access);
        this.#sessions.add(session);
        session.start();
        // The key may have been revoked while the terminal was opened.
        openAccesses.check(access);
      };
      // If the handshake fails, the command has to be ended here.
      const abandoned = (): void => terminateCommand(opened.execution);
      socket.once('close', abandoned);
      server.handleUpgrade(request, socket, head, (webSocket) => {
        socket.off('close', abandoned);
        accept(webSocket);
      });
    } catch (error) {
      rejectUpgrade(socket, toBerthError(error, log, requestId), requestId);
    }
  }

  /** The server stops: open terminals are closed with a code that says so. */
  close(): void {
    for (const session of this.#sessions) session.shutDown();
  }

  #open(caller: Caller, url: TerminalUrl): Promise<OpenTerminal> {
    const options = parseTerminalOptions(url.query);
    const { terminals } = this.#deps;
    return url.kind === 'pod'
      ? terminals.openInPod(caller, url.podId, options)
      : terminals.openInWorker(caller, url.endpointId, url.workerId, options);
  }

  /** Loaded with the first terminal. */
  #load(): Promise<WebSocketServer> {
    this.#server ??= import('ws').then(({ WebSocketServer: Server }) => {
      const server = new Server({
        noServer: true,
        maxPayload: MAX_FRAME_BYTES,
        perMessageDeflate: false,
        handleProtocols: (offered) => offered.has(TERMINAL_PROTOCOL) && TERMINAL_PROTOCOL,
      });
      server.on('headers', (headers, request) =>
        headers.push(`${REQUEST_ID_HEADER}: ${requestIdOf(request)}`),
      );
      return server;
    });
    return this.#server;
  }
}

function checkHandshake(request: Request): void {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket')
    throw new BerthError('rule', 'a terminal is a WebSocket; no other protocol is supported here');
  const offered = offeredProtocols(request);
  if (offered.length > 0 && !offered.includes(TERMINAL_PROTOCOL))
    throw new BerthError('rule', `a client that names protocols has to name ${TERMINAL_PROTOCOL} among them`);
}

function rejectUpgrade(socket: Duplex, error: BerthError, requestId: string): void {
  const { status, title, body } = toProblem(error);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nConnection: close\r\nContent-Type: ${PROBLEM_MEDIA_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\n${REQUEST_ID_HEADER}: ${requestId}\r\n\r\n${text}`,
  );
}
