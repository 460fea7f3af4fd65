import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPod, waitForPodStatus } from '../../packages/testing/src/pod-client.ts';
import type { PodView } from '../../packages/testing/src/pod-client.ts';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** A server whose only data center is this daemon, with accounts that run pods of one image. */
export class DockerPods {
  readonly server: ServerProcess;
  readonly #image: string;
  readonly #drop: () => Promise<void>;
  readonly #clients: ApiClient[] = [];

  private constructor(server: ServerProcess, image: string, drop: () => Promise<void>) {
    this.server = server;
    this.#image = image;
    this.#drop = drop;
  }

  /** `settings`: of the data center, as YAML. */
  static async start(host: string, image: string, settings: string): Promise<DockerPods> {
    const place = await createTestDatabase('sqlite');
    const config = join(place.data, 'berth.yaml');
    writeFileSync(config, `dataCenters:\n  - { id: DOCKER-1, engine: docker, ${settings} }\n`);
    const server = await startServerProcess(place, {
      BERTH_CONFIG: config,
      BERTH_DOCKER: host,
      BERTH_RATE_LIMITS: 'off',
    });
    return new DockerPods(server, image, () => place.drop());
  }

  async account(name: string): Promise<ApiClient> {
    const made = await this.server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
    assert.equal(made.status, 201, made.text);
    const client = createApiClient(this.server.url, made.body.key);
    this.#clients.push(client);
    return client;
  }

  /** A running pod with a script of Node. */
  async run(client: ApiClient, script: string, body: Record<string, unknown> = {}): Promise<PodView> {
    const made = await createPod(client, {
      image: this.#image,
      cmd: ['node', '-e', script],
      dataCenterIds: ['DOCKER-1'],
      ...body,
    });
    assert.equal(made.status, 201, made.text);
    return waitForPodStatus(client, made.body.id, 'RUNNING');
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) {
      const pods = async (): Promise<{ id: string }[]> =>
        (await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body.pods;
      for (const { id } of await pods()) await client.call('DELETE', `/v2/pods/${id}`);
      await waitFor('the pods are gone', async () => (await pods()).length === 0, 60_000);
    }
    await this.server.stop();
    await this.#drop();
  }
}
