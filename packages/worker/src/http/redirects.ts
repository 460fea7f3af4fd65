/** More redirects than this are a loop. */
export const MAX_REDIRECTS = 10;

const KEEP_METHOD: readonly (number | undefined)[] = [307, 308];
const BECOME_GET: readonly (number | undefined)[] = [301, 302, 303];

/**
 * Where a response redirects to, or undefined. With 301, 302 and 303 a POST would become a GET without its
 * body. Those are not followed: the answer to the GET would say nothing about the post.
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

/** The worker's key is for one host, on any port, and is not sent over plain HTTP after HTTPS. */
export function maySendKey(from: string, to: string): boolean {
  const [before, after] = [new URL(from), new URL(to)];
  return (
    before.hostname === after.hostname && (before.protocol === after.protocol || after.protocol === 'https:')
  );
}
