import type { BerthProcess } from '../support/berth-process.ts';

/** How many requests a Berth server sends to the API server. */
export class ApiCallCount {
  readonly #berth: BerthProcess;
  perSecond = 0;
  #calls = 0;

  constructor(berth: BerthProcess) {
    this.#berth = berth;
  }

  get text(): string {
    return `${this.#calls} API calls, ${this.perSecond.toFixed(1)} per second`;
  }

  async during(work: () => Promise<void>): Promise<void> {
    const [before, began] = [await this.#read(), performance.now()];
    await work();
    this.#calls = (await this.#read()) - before;
    this.perSecond = this.#calls / ((performance.now() - began) / 1000);
  }

  async #read(): Promise<number> {
    const { url, key } = this.#berth;
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
    const text = await response.text();
    const found = /^berth_kubernetes_requests_total\{[^}]*\} (\S+)$/m.exec(text);
    if (found === null) throw new Error('the metrics do not have the requests to Kubernetes');
    return Number(found[1]);
  }
}
