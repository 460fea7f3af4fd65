import assert from 'node:assert/strict';
import { containerLogLines } from './pod-client.ts';
import type { PodView } from './pod-client.ts';
import { serverFixture } from './server-fixture.ts';
import type { ServerFixture, TestAccount } from './server-fixture.ts';
import type { DatabaseKind } from './test-database.ts';
import { waitFor } from './wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2', BERTH_DOCKER: 'off' };

/** A server with two data centers and two accounts, for tests of pods. Made inside a `describe`. */
export class PodFixture {
  readonly fixture: ServerFixture;
  #ann: TestAccount | undefined;

  constructor(kind: DatabaseKind) {
    this.fixture = serverFixture(kind, ENV);
  }

  async createAccounts(): Promise<{ ann: TestAccount; bob: TestAccount }> {
    this.#ann = await this.fixture.createAccount('ann');
    return { ann: this.#ann, bob: await this.fixture.createAccount('bob') };
  }

  /** After each test: one that fails leaves the GPUs to the next. */
  readonly deletePods = async (): Promise<void> => {
    const { body } = await this.#owner.call<{ pods: PodView[] }>('GET', '/v2/pods');
    for (const { id, locked } of body.pods) {
      if (locked) await this.#owner.call('PATCH', `/v2/pods/${id}`, { locked: false });
      await this.#owner.call('DELETE', `/v2/pods/${id}`);
    }
  };

  readonly ask = async <T>(document: string, variables?: Record<string, unknown>): Promise<T> => {
    const { body, text } = await this.#owner.graphql<T>(document, variables);
    assert.equal(body.errors, undefined, text);
    return body.data as T;
  };

  readonly refusal = async (document: string, variables?: Record<string, unknown>): Promise<string> =>
    (await this.#owner.graphql(document, variables)).body.errors?.[0]?.message ?? '';

  readonly terminate = async (...ids: string[]): Promise<void> => {
    for (const id of ids) assert.equal((await this.#owner.call('DELETE', `/v2/pods/${id}`)).status, 204);
  };

  readonly writes = async (id: string, line: string): Promise<string> =>
    waitFor(`pod ${id} writes ${line}`, async () =>
      (await containerLogLines(this.#owner, id)).find((found) => found.includes(line)),
    );

  readonly writesTimes = (id: string, line: string, times: number): Promise<boolean> =>
    waitFor(
      `pod ${id} writes ${line} ${times} times`,
      async () =>
        (await containerLogLines(this.#owner, id)).filter((found) => found === line).length >= times,
    );

  get #owner(): TestAccount {
    if (this.#ann === undefined) throw new Error('the accounts are not made yet');
    return this.#ann;
  }
}
