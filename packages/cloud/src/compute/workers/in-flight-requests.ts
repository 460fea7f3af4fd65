/** What the gateway of another server has to do. */
export interface RemoteDemand {
  /** In flight and waiting. */
  requests: number;
  /** In flight, by worker. */
  inFlight: Readonly<Record<string, number>>;
}

/** A server that says nothing for this long has no requests any more. */
const REMOTE_DEMAND_MS = 5_000;

/** How many requests the gateways of all servers have in flight with each load balancing worker. */
export class InFlightRequests {
  readonly #remote = new Map<string, Map<string, RemoteDemand & { at: number }>>();
  readonly #counts = new Map<string, number>();

  set(endpointId: string, workerId: string, count: number): void {
    const key = `${endpointId}/${workerId}`;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }

  count(endpointId: string, workerId: string): number {
    const local = this.#counts.get(`${endpointId}/${workerId}`) ?? 0;
    return this.#remoteOf(endpointId).reduce((sum, { inFlight }) => sum + (inFlight[workerId] ?? 0), local);
  }

  /** Those of this server, by worker. */
  ofEndpoint(endpointId: string): Record<string, number> {
    const prefix = `${endpointId}/`;
    return Object.fromEntries(
      [...this.#counts].flatMap(([key, count]) =>
        key.startsWith(prefix) ? [[key.slice(prefix.length), count] as const] : [],
      ),
    );
  }

  setRemote(endpointId: string, server: string, demand: RemoteDemand): void {
    const servers = this.#remote.get(endpointId) ?? new Map<string, RemoteDemand & { at: number }>();
    this.#remote.set(endpointId, servers.set(server, { ...demand, at: performance.now() }));
  }

  /** Requests of other servers. */
  remoteDemand(endpointId: string): number {
    return this.#remoteOf(endpointId).reduce((sum, { requests }) => sum + requests, 0);
  }

  #remoteOf(endpointId: string): RemoteDemand[] {
    const servers = this.#remote.get(endpointId);
    if (servers === undefined) return [];
    for (const [server, { at }] of servers)
      if (performance.now() - at > REMOTE_DEMAND_MS) servers.delete(server);
    if (servers.size === 0) this.#remote.delete(endpointId);
    return [...servers.values()];
  }
}
