/** The host names below one domain, which endpoints and pods have. Berth's own may be among them: those are nobody else's. */
export class WildcardDomain {
  readonly #suffix: string | undefined;
  readonly #own: ReadonlySet<string>;

  /** Without a name there is no domain. An address of Berth's own that is empty is not set. */
  constructor(name: string, ownAddresses: readonly string[] = []) {
    this.#suffix = name === '' ? undefined : `.${name.toLowerCase()}`;
    this.#own = new Set(
      ownAddresses.filter((address) => address !== '').map((address) => new URL(address).hostname),
    );
  }

  /** What stands before the domain in a host name; undefined where the name is not below it, or is Berth's own. */
  subdomain(host: string | undefined): string | undefined {
    if (this.#suffix === undefined || host === undefined) return undefined;
    const name = host.toLowerCase().replace(/:\d+$/, '');
    return name.endsWith(this.#suffix) && !this.#own.has(name)
      ? name.slice(0, -this.#suffix.length)
      : undefined;
  }
}
