/** A request that is sent on more often than this goes in circles. */
export const MAX_REDIRECTS = 10;

const KEEP_METHOD: readonly (number | undefined)[] = [307, 308];
const BECOME_GET: readonly (number | undefined)[] = [301, 302, 303];

/**
 * Where an answer sends its request on to, or undefined. By 301, 302 and 303 a POST would become a GET without its
 * body. It is not sent on there: that the GET is answered would say nothing about what was posted.
 */
export function redirectTarget(
  from: string,
  isPost: boolean,
  status: number | undefined,
  location: string | undefined,
): string | undefined {
  if (location === undefined || !(KEEP_METHOD.includes(status) || (!isPost && BECOME_GET.includes(status))))
    return undefined;
  const to = URL.parse(location, from);
  return to !== null && /^https?:$/.test(to.protocol) ? to.href : undefined;
}

/** The key of this worker is for one host, on whichever port, and is not sent in the clear where it was not before. */
export function maySendKey(from: string, to: string): boolean {
  const [before, after] = [new URL(from), new URL(to)];
  return (
    before.hostname === after.hostname && (before.protocol === after.protocol || after.protocol === 'https:')
  );
}
