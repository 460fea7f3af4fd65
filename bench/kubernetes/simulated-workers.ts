import { Agent, request } from 'node:http';
import { ListWatch } from '../../packages/cloud/src/engines/kubernetes/client/list-watch.ts';
import type { PodObject } from '../../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../../packages/cloud/src/engines/kubernetes/pod-labels.ts';
import type { KubernetesEngineFixture } from '../../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import type { BerthProcess } from '../support/berth-process.ts';

/** What the programs in the simulated containers would do: each waits for jobs and ends them at once. */
export class SimulatedWorkers {
  readonly #berth: BerthProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  readonly #watch: ListWatch<PodObject>;
  /** Workers that have asked for a job, whose pods are there. */
  readonly #polling = new Set<string>();
  readonly #running = new Set<string>();
  readonly #onCreated = new Map<string, (at: number) => void>();
  #isStopped = false;

  constructor(engine: KubernetesEngineFixture, berth: BerthProcess) {
    this.#berth = berth;
    this.#watch = new ListWatch<PodObject>({
      client: engine.cluster,
      path: `/api/v1/namespaces/${engine.namespace}/pods`,
      query: {},
      onList: async (pods) => {
        for (const pod of pods) this.#see(pod);
      },
      onChange: async (type, pod) => {
        if (type !== 'DELETED') return this.#see(pod);
        this.#running.delete(readDetails(pod.metadata)?.id ?? '');
      },
      onProblem: (what, error) => process.stderr.write(`${what}: ${String(error)}\n`),
    });
  }

  get polling(): number {
    return this.#polling.size;
  }

  /** When the first pod of this endpoint is there. Asked before it is woken. */
  created(endpointId: string): Promise<number> {
    return new Promise((resolve) => this.#onCreated.set(endpointId, resolve));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#agent.destroy();
    await this.#watch.close();
  }

  #see({ metadata, status }: PodObject): void {
    const details = readDetails(metadata);
    const endpointId = details?.labels['endpoint'];
    if (details === undefined || endpointId === undefined) return;
    this.#onCreated.get(endpointId)?.(performance.now());
    this.#onCreated.delete(endpointId);
    if (status?.phase !== 'Running' || this.#running.has(details.id)) return;
    this.#running.add(details.id);
    void this.#work(endpointId, details.id);
  }

  async #work(endpointId: string, id: string): Promise<void> {
    while (this.#running.has(id) && !this.#isStopped) {
      try {
        this.#polling.add(id);
        const { status, body } = await this.#ask(
          'GET',
          `/v2/${endpointId}/job-take/${id}?gpu=none&job_in_progress=0`,
        );
        if (status !== 200) continue;
        const { id: job } = JSON.parse(body) as { id: string };
        await this.#ask(
          'POST',
          `/v2/${endpointId}/job-done/${id}/${job}?gpu=none&isStream=false`,
          '{"output":1}',
        );
      } catch (error) {
        if (!this.#isStopped) process.stderr.write(`worker ${id}: ${String(error)}\n`);
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    }
    this.#polling.delete(id);
  }

  #ask(method: string, path: string, body?: string): Promise<{ status: number; body: string }> {
    const { url, key } = this.#berth;
    return new Promise((resolve, reject) => {
      const asking = request(
        url + path,
        { method, agent: this.#agent, headers: { authorization: `Bearer ${key}` } },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
          response.on('error', reject);
        },
      );
      asking.on('error', reject);
      asking.end(body);
    });
  }
}
