import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { Server as TlsServer } from 'node:tls';
import { AddressRanges } from '../../support/address-ranges.ts';
import type { Log } from '../../support/log.ts';
import type { CertificateSource } from '../../resources/certificates/certificate-source.ts';

/** The first byte of a TLS connection. No method of HTTP begins with it. */
const TLS_HANDSHAKE = 0x16;
/** A client that sends nothing, or does not finish its handshake, is disconnected. */
const HANDSHAKE_TIMEOUT_MS = 30_000;
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

export interface TlsAcceptorDeps {
  certificates: CertificateSource;
  /** Serves plain connections of clients that must use TLS. */
  redirects: HttpServer;
  /** Who may connect without TLS, beside this machine. */
  plainFrom: readonly string[];
  log: Log;
}

/**
 * HTTPS and HTTP on one port, distinguished by the first byte. Clients on this machine and its containers may
 * stay with HTTP: they reach the server at addresses that no certificate is for, and the port stays the same
 * after a restart. Everybody else is redirected to HTTPS.
 */
export class TlsAcceptor {
  readonly #deps: TlsAcceptorDeps;
  readonly #tls: TlsServer;
  readonly #plainRanges: AddressRanges;
  /** Connections that have not sent enough yet. */
  readonly #pending = new Set<Socket>();
  #serve: (socket: Socket) => void = (socket) => socket.destroy();

  constructor(deps: TlsAcceptorDeps) {
    const { certificates, plainFrom, log } = deps;
    this.#deps = deps;
    this.#plainRanges = new AddressRanges([...LOOPBACK, ...plainFrom]);
    this.#tls = createServer({ ALPNProtocols: ['http/1.1'], handshakeTimeout: HANDSHAKE_TIMEOUT_MS });
    const use = ({ certificate, key }: { certificate: string; key: string }): void =>
      this.#tls.setSecureContext({ cert: certificate, key });
    if (certificates.current !== undefined) use(certificates.current);
    certificates.onChange(use);
    this.#tls.on('secureConnection', (socket) => {
      socket.allowHalfOpen = true;
      this.#serve(socket);
    });
    this.#tls.on('tlsClientError', (error, socket) => {
      log.debug({ reason: error.message, from: socket.remoteAddress }, 'a TLS handshake failed');
      socket.destroy();
    });
  }

  /** The server behind it. */
  attach(serve: (socket: Socket) => void): void {
    this.#serve = serve;
  }

  /** Also clients of these ranges may connect without TLS. */
  allowPlain(ranges: readonly string[]): void {
    for (const range of ranges) this.#plainRanges.add(range);
  }

  accept(socket: Socket): void {
    const expire = (): void => void socket.destroy();
    const forget = (): void => void this.#pending.delete(socket);
    const timer = setTimeout(expire, HANDSHAKE_TIMEOUT_MS).unref();
    this.#pending.add(socket);
    socket.on('error', expire).once('close', forget);
    socket.once('data', (bytes: Buffer) => {
      clearTimeout(timer);
      forget();
      socket.pause().off('error', expire).off('close', forget);
      socket.unshift(bytes);
      if (bytes[0] === TLS_HANDSHAKE) {
        // A client that leaves during the handshake must not keep the connection open.
        socket.allowHalfOpen = false;
        this.#tls.emit('connection', socket);
        return;
      }
      if (this.#mayBePlain(socket)) this.#serve(socket);
      else this.#deps.redirects.emit('connection', socket);
      // What was put back flows first. TLS reads it by itself.
      socket.resume();
    });
  }

  /** Ends the connections on which no request can have begun. */
  closePending(): void {
    for (const socket of this.#pending) socket.destroy();
  }

  #mayBePlain({ remoteAddress = '', localAddress }: Socket): boolean {
    return remoteAddress === localAddress || this.#plainRanges.includes(remoteAddress);
  }
}
