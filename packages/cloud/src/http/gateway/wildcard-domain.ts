/**
 * The host names of endpoints and pods below one domain. Berth's own host names may be below it too, and are
 * excluded.
 */
export class WildcardDomain {
  /** Undefined if there is no domain. */
  readonly name: string | undefined;
  readonly #suffix: string | undefined;
  readonly #own: ReadonlySet<string>;

  /** An empty name means no domain. Empty URLs are ignored. */
  constructor(name: string, ownUrls: readonly string[] = []) {
    this.name = name === '' ? undefined : name.toLowerCase();
    this.#suffix = name === '' ? undefined : `.${name.toLowerCase()}`;
    this.#own = new Set(ownUrls.filter((url) => url !== '').map((url) => new URL(url).hostname));
  }

  /** The part of a host name before the domain; undefined if the name is not below it, or is Berth's own. */
  subdomain(host: string | undefined): string | undefined {
    if (this.#suffix === undefined || host === undefined) return undefined;
    const name = host.toLowerCase().replace(/:\d+$/, '');
    return name.endsWith(this.#suffix) && !this.#own.has(name)
      ? name.slice(0, -this.#suffix.length)
      : undefined;
  }
}
