import type { Request } from '../raw.ts';

/** Another version of HTTP, or the same one encrypted. */
const HTTP_ITSELF = /^(h2c?|http\/.*|tls\/.*)$/i;

/**
 * Whether a request really asks to speak something else than HTTP. Many clients offer `h2c` with
 * their first request and are content with HTTP/1.1: a server that does not speak it answers as if
 * nothing was offered.
 */
export function asksForAnotherProtocol({ headers }: Pick<Request, 'headers'>): boolean {
  return (headers.upgrade ?? '').split(',').some((offer) => offer.trim() !== '' && !HTTP_ITSELF.test(offer.trim()));
}
