/** How many requests the gateway of this server has in flight with each load balancing worker. */
export class InFlightRequests {
  readonly #counts = new Map<string, number>();

  set(endpointId: string, workerId: string, count: number): void {
    const key = `${endpointId}/${workerId}`;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }

  count(endpointId: string, workerId: string): number {
    return this.#counts.get(`${endpointId}/${workerId}`) ?? 0;
  }
}
