import type { Server } from 'node:http';

/** Where this server listens, as an address that works on this machine. */
export function listeningOrigin(server: Pick<Server, 'address'>): string {
  const place = server.address();
  if (place === null || typeof place === 'string') return 'http://127.0.0.1';
  const { address, port, family } = place;
  const everywhere = address === '0.0.0.0' || address === '::';
  return `http://${everywhere ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/**
 * Where clients reach Berth: where the operator says, or else where it listens, by the name of its
 * certificate.
 */
export function publicOrigin(
  publicUrl: string,
  server: Pick<Server, 'address'>,
  tls?: { hostName(): string | undefined },
): string {
  if (publicUrl !== '') return publicUrl.replace(/\/+$/, '');
  const listening = listeningOrigin(server);
  if (tls === undefined) return listening;
  const { hostname, port } = new URL(listening);
  return new URL(`https://${tls.hostName() ?? hostname}:${port}`).origin;
}
