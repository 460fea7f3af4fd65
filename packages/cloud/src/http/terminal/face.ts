import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket, WebSocketServer } from 'ws';
import type { Caller } from '../../resources/caller.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import type { OpenedTerminal, Terminals } from '../../resources/terminals/terminals.ts';
import { BerthError } from '../../support/errors.ts';
import { asBerthError } from '../failures.ts';
import type { Request } from '../raw.ts';
import { problemOf, PROBLEM_TYPE } from '../rest-v2/failures.ts';
import { terminalAddress } from './address.ts';
import type { TerminalAddress } from './address.ts';
import { offeredProtocols, TERMINAL_PROTOCOL, terminalKey } from './key.ts';
import { endCommand, TerminalSession } from './session.ts';
import { readWish } from './wish.ts';

/** What a client may send in one frame: more than anyone pastes. */
const MAX_FRAME_BYTES = 1024 * 1024;

export interface TerminalFaceParts {
  terminals: Terminals;
  gate: Gate;
  log: FastifyBaseLogger;
  /** How often a quiet connection is tried, and the key looked at again. */
  pingMs?: number;
}

/** Terminals in pods and workers, over WebSockets. docs/terminal.md describes what is spoken. */
export class TerminalFace {
  readonly #parts: TerminalFaceParts;
  readonly #sessions = new Set<TerminalSession>();
  readonly #unwatch: () => void;
  #server: Promise<WebSocketServer> | undefined;

  constructor(parts: TerminalFaceParts) {
    this.#parts = parts;
    this.#unwatch = parts.gate.watch(() => {
      for (const session of this.#sessions) session.checkKey();
    });
  }

  address(url: string): TerminalAddress | undefined {
    return terminalAddress(url);
  }

  async upgrade(request: Request, socket: Duplex, head: Buffer, address: TerminalAddress): Promise<void> {
    const { log, pingMs } = this.#parts;
    const requestId = randomUUID();
    const key = terminalKey(request, address.query);
    const admit = (): Promise<Caller> =>
      this.#parts.gate.admit(key, { interface: 'rest-v2', family: 'rest', need: 'write', requestId });
    try {
      checkHandshake(request);
      const caller = await admit();
      const server = await this.#load();
      const opened = await this.#open(caller, address);
      if (socket.destroyed) return endCommand(opened.execution);
      const accept = (webSocket: WebSocket): void => {
        const session = new TerminalSession({
          webSocket,
          opened,
          admit,
          log,
          ...(pingMs !== undefined && { pingMs }),
          onOver: () => this.#sessions.delete(session),
        });
        this.#sessions.add(session);
        session.begin();
      };
      // Where the handshake fails after all, nobody is there to end the command.
      const abandoned = (): void => endCommand(opened.execution);
      socket.once('close', abandoned);
      server.handleUpgrade(request, socket, head, (webSocket) => {
        socket.off('close', abandoned);
        accept(webSocket);
      });
    } catch (error) {
      refuse(socket, asBerthError(error, log, requestId));
    }
  }

  /** The server stops: whoever has a terminal open is told to come back later. */
  close(): void {
    this.#unwatch();
    for (const session of this.#sessions) session.goAway();
  }

  #open(caller: Caller, address: TerminalAddress): Promise<OpenedTerminal> {
    const wish = readWish(address.query);
    const { terminals } = this.#parts;
    return address.kind === 'pod'
      ? terminals.pod(caller, address.podId, wish)
      : terminals.worker(caller, address.endpointId, address.workerId, wish);
  }

  /** Loaded with the first terminal. */
  #load(): Promise<WebSocketServer> {
    this.#server ??= import('ws').then(
      ({ WebSocketServer: Server }) =>
        new Server({
          noServer: true,
          maxPayload: MAX_FRAME_BYTES,
          perMessageDeflate: false,
          handleProtocols: (offered) => offered.has(TERMINAL_PROTOCOL) && TERMINAL_PROTOCOL,
        }),
    );
    return this.#server;
  }
}

function checkHandshake(request: Request): void {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket')
    throw new BerthError('rule', 'a terminal is a WebSocket; nothing else is spoken here');
  const offered = offeredProtocols(request);
  if (offered.length > 0 && !offered.includes(TERMINAL_PROTOCOL))
    throw new BerthError('rule', `a client that names protocols has to name ${TERMINAL_PROTOCOL} among them`);
}

function refuse(socket: Duplex, error: BerthError): void {
  const { status, title, body } = problemOf(error);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nConnection: close\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}
