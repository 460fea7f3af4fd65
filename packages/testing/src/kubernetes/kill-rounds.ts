// Workers with jobs and pods on a real cluster, while one part after the other is killed and comes back.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { NodeObject, PodObject } from '../../../cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../../../cloud/src/engines/kubernetes/pod-labels.ts';
import type { ApiClient } from '../api-client.ts';
import { listWorkers } from '../deploy-handler.ts';
import { createPod, getPod } from '../pod-client.ts';
import type { PodView } from '../pod-client.ts';
import { type ServerProcess, startServerProcess } from '../server-process.ts';
import type { TestDatabase } from '../test-database.ts';
import { waitFor } from '../wait-for.ts';
import { nodeCommand, queueWorkerSource } from '../worker-sources.ts';
import { type BilledRuns, checkBilledRuns } from './billed-runs.ts';
import { ContainerRuns } from './container-runs.ts';
import type { KubernetesForTests } from './kubernetes-cluster.ts';
import { kubernetesEngineFixture, type KubernetesEngineFixture } from './kubernetes-engine-fixture.ts';

const SERVERS = [0, 1];
export const KILLED_PARTS = ['server-0', 'server-1', 'apiserver', 'etcd', 'node-1'] as const;
const MASTER_KEY = '7'.repeat(64);
const WITHIN_MS = 180_000;
const CPU = { id: 'cpu3c', vcpuCount: 2 };
const SUBMIT_INTERVAL_MS = 100;
const JOB_MS = 300;
const LOOK_INTERVAL_MS = 250;
const MS_PER_SECOND = 1000;

export interface KillRoundsOptions {
  workers: number;
  pods: number;
  /** What is killed, in this order; server-0 leads at first. Default: all of them. */
  parts?: readonly (typeof KILLED_PARTS)[number][];
  report?: (line: string) => void;
}

export interface KillRoundsResult extends BilledRuns {
  jobs: number;
}

/**
 * Kills parts, one after the other: each of two servers on one PostgreSQL, the API server, etcd and a node.
 * Everything is checked after each, and in the end.
 */
export async function runKillRounds(
  cluster: KubernetesForTests,
  database: Pick<TestDatabase, 'data' | 'url'>,
  options: KillRoundsOptions,
): Promise<KillRoundsResult> {
  const engine = await kubernetesEngineFixture(cluster, { lostNodeTimeout: 1 });
  const rounds = new KillRounds(cluster, engine, database, options);
  try {
    return await rounds.run();
  } finally {
    await rounds.close();
    await engine.close();
  }
}

class KillRounds {
  readonly #cluster: KubernetesForTests;
  readonly #engine: KubernetesEngineFixture;
  readonly #database: Pick<TestDatabase, 'data' | 'url'>;
  readonly #options: KillRoundsOptions;
  readonly #runs: ContainerRuns;
  readonly #jobs = new Map<string, number>();
  readonly #servers: ServerProcess[] = [];
  readonly #ports: string[] = [];
  /** The one that does not run. */
  #killed: number | undefined;
  #endpointId = '';
  #pods: string[] = [];
  #isLoading = true;
  /** How many are wanted now. */
  #workers: number;

  constructor(
    cluster: KubernetesForTests,
    engine: KubernetesEngineFixture,
    database: Pick<TestDatabase, 'data' | 'url'>,
    options: KillRoundsOptions,
  ) {
    this.#cluster = cluster;
    this.#engine = engine;
    this.#database = database;
    this.#options = options;
    this.#workers = options.workers;
    this.#runs = new ContainerRuns(engine);
  }

  async run(): Promise<KillRoundsResult> {
    for (const index of SERVERS) await this.#startServer(index);
    await this.#fill();
    const loading = this.#load();
    for (const part of this.#options.parts ?? KILLED_PARTS) await this.#round(part);
    this.#isLoading = false;
    await loading;
    await this.#checkJobs();
    await this.#removeAll();
    const billed = await checkBilledRuns(this.#client, {
      endpointId: this.#endpointId,
      pods: this.#pods,
      runs: this.#runs.all(),
    });
    return { jobs: this.#jobs.size, ...billed };
  }

  async close(): Promise<void> {
    this.#isLoading = false;
    await this.#runs.close();
    for (const server of this.#servers) await server.stop();
  }

  get #client(): ApiClient {
    const server = this.#servers.find((_, index) => index !== this.#killed);
    if (server === undefined) throw new Error('no server runs');
    return server.client();
  }

  /** Each as on a machine of its own; again at the same address. */
  async #startServer(index: number): Promise<void> {
    const server = await startServerProcess(
      { url: this.#database.url, data: join(this.#database.data, String(index)) },
      { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: MASTER_KEY, ...this.#engine.env },
      ['--port', this.#ports[index] ?? '0'],
    );
    this.#servers[index] = server;
    this.#ports[index] = new URL(server.url).port;
  }

  async #fill(): Promise<void> {
    const { workers, pods } = this.#options;
    await waitFor('the data center is there', async () =>
      (await this.#client.call('GET', '/v2/catalog/datacenters')).text.includes(this.#engine.dataCenterId),
    );
    const code = queueWorkerSource('async ({ n, ms }) => { await pause(ms); return n; }');
    const { body, text } = await this.#client.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'steady',
      type: 'QUEUE',
      image: this.#engine.image,
      args: JSON.stringify(nodeCommand(code)),
      cpu: [CPU],
      scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
      workers: { min: workers, max: workers },
    });
    assert.ok(body.id, text);
    this.#endpointId = body.id;
    const made = await Promise.all(
      Array.from({ length: pods }, (_, index) =>
        createPod(this.#client, {
          name: `p${index}`,
          image: this.#engine.image,
          cmd: ['sh', '-c', 'exec sleep 10000'],
        }),
      ),
    );
    this.#pods = made.map(({ body: pod }) => pod.id);
    await this.#settle();
  }

  /** Submits jobs all the time. A submit without an answer is no promise, and is sent again. */
  async #load(): Promise<void> {
    for (let n = 1; this.#isLoading; n += 1) {
      await pause(SUBMIT_INTERVAL_MS);
      try {
        const { status, body } = await this.#client.call<{ id: string }>(
          'POST',
          `/v2/${this.#endpointId}/run`,
          { input: { n, ms: JOB_MS } },
        );
        if (status === 200) this.#jobs.set(body.id, n);
      } catch {
        // The server is down.
      }
    }
  }

  async #round(part: (typeof KILLED_PARTS)[number]): Promise<void> {
    const began = performance.now();
    if (part === 'node-1') await this.#loseNode(part);
    else {
      // One more starts while it happens.
      await this.#addWorker();
      if (part === 'server-0' || part === 'server-1') await this.#killServer(Number(part.at(-1)));
      else await this.#killControlPlane(part);
    }
    await this.#settle();
    const seconds = ((performance.now() - began) / MS_PER_SECOND).toFixed(1);
    this.#options.report?.(`killed ${part}: all as before after ${seconds} s`);
  }

  async #addWorker(): Promise<void> {
    this.#workers += 1;
    const { status, text } = await this.#client.call('PATCH', `/v2/serverless/${this.#endpointId}`, {
      workers: { min: this.#workers, max: this.#workers },
    });
    assert.equal(status, 200, text);
  }

  async #killServer(index: number): Promise<void> {
    this.#killed = index;
    await this.#servers[index]?.kill();
    await this.#settle();
    await this.#startServer(index);
    this.#killed = undefined;
  }

  async #killControlPlane(part: 'apiserver' | 'etcd'): Promise<void> {
    this.#cluster.kill(part);
    await waitFor(`${part} is missed`, async () => !(await this.#answers()));
    this.#cluster.restore(part);
    await waitFor('the API server answers again', () => this.#answers(), WITHIN_MS);
  }

  /** Until its workers have been replaced, also one that was about to start there; then it boots. */
  async #loseNode(node: 'node-1'): Promise<void> {
    const lost = this.#runs.loseNode(node);
    assert.ok(lost.length > 0, `nothing runs on ${node}`);
    const podsOnNode = this.#pods.filter((id) => lost.some((run) => run.id === id));
    this.#cluster.kill(node);
    await this.#addWorkerOn(node);
    await this.#waitFor('its workers run elsewhere', async () => {
      const workers = await this.#workerPods();
      return workers.length === this.#workers && workers.every(({ spec }) => spec.nodeName !== node);
    });
    this.#cluster.restore(node);
    for (const id of podsOnNode) {
      const ended = await this.#waitFor(`the end of ${id} is known`, async () => {
        const pod = await getPod(this.#client, id);
        return pod.status !== 'RUNNING' && pod;
      });
      assert.equal(ended.status, 'ERROR', JSON.stringify(ended));
      // Its owner starts it again.
      const { status, text } = await this.#client.call('POST', `/v2/pods/${id}/action`, { action: 'start' });
      assert.equal(status, 200, text);
    }
  }

  /** The scheduler chooses this node for it, unless the cluster has noticed by now that the node is lost. */
  async #addWorkerOn(node: string): Promise<void> {
    const { cluster } = this.#engine;
    const { items: nodes } = await cluster.get<{ items: NodeObject[] }>('/api/v1/nodes');
    const others = nodes.map(({ metadata: { name } }) => name).filter((name) => name !== node);
    const cordon = (unschedulable: boolean): Promise<unknown> =>
      Promise.all(others.map((name) => cluster.merge(`/api/v1/nodes/${name}`, { spec: { unschedulable } })));
    await cordon(true);
    await this.#addWorker();
    await this.#waitFor(`a worker is about to start on ${node}`, async () => {
      const isChosen = (await this.#clusterPods()).some(
        ({ spec, status }) => spec.nodeName === node && status?.phase === 'Pending',
      );
      const { status } = await cluster.get<NodeObject>(`/api/v1/nodes/${node}`);
      return isChosen || status.conditions?.some(({ type, status: is }) => type === 'Ready' && is !== 'True');
    });
    await cordon(false);
  }

  async #answers(): Promise<boolean> {
    return this.#engine.cluster
      .get(`/api/v1/namespaces/${this.#engine.namespace}`, undefined, { timeoutMs: 2000 })
      .then(
        () => true,
        () => false,
      );
  }

  async #clusterPods(): Promise<PodObject[]> {
    return (
      await this.#engine.cluster.get<{ items: PodObject[] }>(
        `/api/v1/namespaces/${this.#engine.namespace}/pods`,
      )
    ).items;
  }

  async #workerPods(): Promise<PodObject[]> {
    return (await this.#clusterPods()).filter(
      ({ metadata, status }) =>
        readDetails(metadata)?.labels['kind'] === 'worker' &&
        metadata.deletionTimestamp === undefined &&
        status?.phase === 'Running',
    );
  }

  /** As many workers and pods as are wanted, in Berth and in the cluster, and nothing else. */
  async #settle(): Promise<void> {
    const { pods } = this.#options;
    const workers = this.#workers;
    await this.#waitFor('everything that is wanted runs, once', async () => {
      const ready = (await listWorkers(this.#client, this.#endpointId)).filter(
        ({ status }) => status === 'IDLE' || status === 'RUNNING',
      );
      const views: PodView[] = await Promise.all(this.#pods.map((id) => getPod(this.#client, id)));
      const inCluster = await this.#clusterPods();
      return (
        ready.length === workers &&
        views.every(({ status }) => status === 'RUNNING') &&
        inCluster.length === workers + pods &&
        inCluster.every(({ status }) => status?.phase === 'Running')
      );
    });
  }

  /** Says what runs where it does not come to that. */
  async #waitFor<T>(what: string, find: () => Promise<T | false | undefined>): Promise<T> {
    const findSlowly = async (): Promise<T | false | undefined> => {
      const found = await find();
      // Each look asks for everything: more of them would be load.
      if (found === undefined || found === false) await pause(LOOK_INTERVAL_MS);
      return found;
    };
    return waitFor(what, findSlowly, WITHIN_MS).catch(async (error: unknown) => {
      const inCluster = (await this.#clusterPods()).map(
        ({ metadata, status, spec }) =>
          `${metadata.name} ${spec.nodeName} ${status?.phase} ${metadata.deletionTimestamp ?? ''} ${JSON.stringify(status?.conditions)}`,
      );
      const seen = await listWorkers(this.#client, this.#endpointId);
      throw new Error(
        `${(error as Error).message}\n${JSON.stringify(seen)}\n${inCluster.join('\n')}\n${this.#servers.map((server) => server.log().slice(-3000)).join('\n')}`,
      );
    });
  }

  async #checkJobs(): Promise<void> {
    for (const [id, n] of this.#jobs) {
      const job = await waitFor(
        `job ${id} has ended`,
        async () => {
          const { body } = await this.#client.call<{ status: string; output: unknown }>(
            'GET',
            `/v2/${this.#endpointId}/status/${id}`,
          );
          return !['IN_QUEUE', 'IN_PROGRESS'].includes(body.status) && body;
        },
        WITHIN_MS,
      );
      assert.deepEqual([job.status, job.output], ['COMPLETED', n], JSON.stringify(job));
    }
  }

  async #removeAll(): Promise<void> {
    const removed = await this.#client.call('DELETE', `/v2/serverless/${this.#endpointId}`);
    assert.equal(removed.status, 204, removed.text);
    for (const id of this.#pods)
      assert.equal((await this.#client.call('DELETE', `/v2/pods/${id}`)).status, 204);
    for (const kind of ['pods', 'secrets', 'services'])
      await waitFor(
        `no ${kind} are left`,
        async () => (await this.#engine.names(kind)).length === 0,
        WITHIN_MS,
      );
  }
}
