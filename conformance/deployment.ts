import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { SkippedError } from './skipped-error.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Where the four interfaces of a deployment are. */
export interface ApiUrls {
  v1: string;
  v2: string;
  jobs: string;
  graphql: string;
}

export interface DeploymentOptions {
  urls: ApiUrls;
  key: string;
  /** Opens the worker side of its endpoints: the suite then is the worker. */
  workerToken?: string | undefined;
  /** An endpoint with workers of its own. */
  endpointId?: string | undefined;
  /** May pods be rented? That can cost money. */
  pods: boolean;
  /** What its endpoints and pods run. */
  image: string;
}

/** An answer whole, whatever its status. */
export interface ApiResponse<T = Record<string, unknown>> {
  status: number;
  headers: Headers;
  text: string;
  body: T;
}

type Interface = keyof ApiUrls;

export interface Resource extends Record<string, unknown> {
  id: string;
}

const TIMEOUT_MS = 60_000;

/** One deployment, as someone with a key sees it. */
export class Deployment {
  readonly options: DeploymentOptions;
  /** The name of everything that is made here begins so. */
  readonly prefix = `conformance-${randomBytes(4).toString('hex')}`;
  readonly #cleanups: (() => Promise<unknown>)[] = [];
  #names = 0;

  constructor(options: DeploymentOptions) {
    this.options = options;
  }

  /** A name that nothing else has. */
  uniqueName(): string {
    return `${this.prefix}-${(this.#names += 1)}`;
  }

  /** Done when the check has ended, the last first. */
  onCleanup(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  async cleanUp(): Promise<void> {
    for (let next = this.#cleanups.pop(); next !== undefined; next = this.#cleanups.pop()) {
      await next().catch(() => undefined);
    }
  }

  /** An empty authorization sends none. */
  async call<T = Record<string, unknown>>(
    face: Interface,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse<T>> {
    const raw = typeof body === 'string';
    const sent = {
      authorization: `Bearer ${this.options.key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    };
    const response = await fetch(this.options.urls[face] + path, {
      method,
      headers: Object.entries(sent).filter(([, value]) => value !== ''),
      ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parsed(text) as T };
  }

  /** The same, and it must answer with this status. */
  async expectStatus<T = Resource>(
    face: Interface,
    method: string,
    path: string,
    status: number,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<T> {
    const answer = await this.call<T>(face, method, path, body, headers);
    assert.equal(
      answer.status,
      status,
      `${method} ${path} answered ${answer.status} where ${status} is right: ${answer.text.slice(0, 160)}`,
    );
    return answer.body;
  }

  /** The data of a GraphQL document without errors. */
  async query<T = Record<string, Resource>>(query: string, variables?: Record<string, unknown>): Promise<T> {
    const { status, body, text } = await this.call<{ data: T; errors?: unknown }>('graphql', 'POST', '', {
      query,
      ...(variables !== undefined && { variables }),
    });
    assert.equal(status, 200, text.slice(0, 160));
    assert.ok(!('errors' in body), `errors: ${text.slice(0, 200)}`);
    return body.data;
  }

  /** A thing that goes when the check has ended. */
  async create(
    face: 'v1' | 'v2',
    path: string,
    status: number,
    body: Record<string, unknown>,
  ): Promise<Resource> {
    const made = await this.expectStatus(face, 'POST', path, status, body);
    assert.equal(typeof made.id, 'string', `${path} answered no id`);
    this.onCleanup(() => this.call(face, 'DELETE', `${path}/${made.id}`));
    return made;
  }

  async dataCenter(): Promise<string> {
    const { dataCenters } = await this.expectStatus<{
      dataCenters: { id: string; networkVolumeTypes: string[] }[];
    }>('v2', 'GET', '/catalog/datacenters', 200);
    const found = dataCenters.find(({ networkVolumeTypes }) => networkVolumeTypes.length > 0);
    if (found === undefined) throw new SkippedError('no data center keeps network volumes');
    return found.id;
  }

  /** A queue endpoint on which nothing runs. */
  endpoint(settings: Record<string, unknown> = {}): Promise<Resource> {
    return this.create('v2', '/serverless', 201, {
      name: this.uniqueName(),
      type: 'QUEUE',
      image: this.options.image,
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 0 },
      ...settings,
    });
  }

  waitFor<T>(what: string, check: () => Promise<T | undefined | false>): Promise<T> {
    return waitFor(what, check, TIMEOUT_MS);
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
