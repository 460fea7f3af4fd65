import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Duplex } from 'node:stream';
import type { LogQuery } from '../../domain/log-line.ts';
import { BerthError } from '../../support/errors.ts';
import { PEER_HEADER, type PeerSignature } from '../../support/peer-signature.ts';
import type { InstanceEngine } from '../engine.ts';
import type { ExecutionOptions } from '../instance.ts';
import { serveExecution } from './execution-frames.ts';
import { PEER_PROTOCOL } from './peer-client.ts';

/** `/internal/engines/process/stop?args=["id",1000]` */
const PATH = /^\/internal\/engines\/(process|docker|kubernetes:[A-Za-z0-9-]+)\/([a-zA-Z]+)\?args=(.*)$/;

/**
 * What other servers may ask of an engine of this machine. They are of this installation, so the arguments
 * are as they should be.
 */
const CALLS: Record<string, (engine: InstanceEngine, args: readonly unknown[]) => Promise<unknown>> = {
  list: (engine) => engine.list(),
  stop: (engine, [id, graceMs]) => engine.stop(id as string, graceMs as number),
  remove: (engine, [id, graceMs]) => engine.remove(id as string, (graceMs as number | null) ?? undefined),
  deleteLog: (engine, [id]) => engine.deleteLog(id as string),
  logSystemLine: (engine, [id, line]) => engine.logSystemLine(id as string, line as string),
  address: (engine, [id, port]) => engine.address(id as string, port as number),
  usage: (engine, [id]) => engine.usage(id as string),
  stat: async (engine, [id, path]) => engine.files?.stat(id as string, path as string),
};

export interface EngineServerDeps {
  signature: PeerSignature;
  /** The engine of this machine, by the name of peerPath; never one that forwards. */
  engine(name: string): InstanceEngine | undefined;
}

/**
 * Answers other servers about the instances of this machine. A request without their signature is answered as
 * if there were no such route.
 */
export class EngineServer {
  readonly #deps: EngineServerDeps;

  constructor(deps: EngineServerDeps) {
    this.#deps = deps;
  }

  /** False for requests that are none of a server. */
  serve(request: IncomingMessage, response: ServerResponse): boolean {
    const call = this.#match(request);
    if (call === undefined) return false;
    this.#answer(call, request, response).catch((error: unknown) => fail(response, error));
    return true;
  }

  /** False for upgrades that are none of a server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const call = request.headers.upgrade === PEER_PROTOCOL ? this.#match(request) : undefined;
    if (call === undefined || call.operation !== 'exec') return false;
    const [id, argv, options] = call.args as [string, string[], ExecutionOptions | null];
    if (head.length > 0) socket.unshift(head);
    call.engine.exec(id, argv, options ?? {}).then(
      (execution) => {
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PEER_PROTOCOL}\r\n\r\n`,
        );
        serveExecution(execution, socket);
      },
      (error: unknown) => {
        const body = JSON.stringify(failureOf(error));
        socket.end(
          `HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n` +
            `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
      },
    );
    return true;
  }

  #match({
    url = '',
    method = '',
    headers,
  }: IncomingMessage): { engine: InstanceEngine; operation: string; args: unknown[] } | undefined {
    const [, name = '', operation = '', args = ''] = PATH.exec(url) ?? [];
    if (operation === '' || !this.#deps.signature.verify(headers[PEER_HEADER], method, url)) return undefined;
    const engine = this.#deps.engine(name);
    return engine && { engine, operation, args: JSON.parse(decodeURIComponent(args)) as unknown[] };
  }

  async #answer(
    { engine, operation, args }: { engine: InstanceEngine; operation: string; args: unknown[] },
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (operation === 'logs') return sendLogs(engine, args as [string, LogQuery | null], response);
    if (operation === 'read') {
      const tar = await engine.files?.read(args[0] as string, args[1] as string);
      if (tar === undefined) throw new BerthError('state', 'files cannot be copied out of this instance');
      await pipeline(tar, response).catch(() => response.destroy());
      return;
    }
    if (operation === 'write') {
      await engine.files?.write(args[0] as string, args[1] as string, request);
      response.end();
      return;
    }
    const call = CALLS[operation];
    if (call === undefined) throw new BerthError('no-route', `there is no ${operation}`);
    response.end(JSON.stringify(await call(engine, args)));
  }
}

/** One line of JSON each, as they come. */
async function sendLogs(
  engine: InstanceEngine,
  [id, query]: [string, LogQuery | null],
  response: ServerResponse,
): Promise<void> {
  const stop = new AbortController();
  response.once('close', () => stop.abort());
  response.flushHeaders();
  for await (const line of engine.logs(id, query ?? {}, stop.signal)) {
    if (stop.signal.aborted) return;
    if (!response.write(`${JSON.stringify(line)}\n`)) await once(response, 'drain', { signal: stop.signal });
  }
  response.end();
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500).end(JSON.stringify(failureOf(error)));
}

function failureOf(error: unknown): { code: string; message: string } {
  return error instanceof BerthError
    ? { code: error.code, message: error.message }
    : { code: 'unavailable', message: error instanceof Error ? error.message : String(error) };
}
