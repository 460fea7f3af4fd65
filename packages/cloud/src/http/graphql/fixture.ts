import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Fastify from 'fastify';
import type { LightMyRequestResponse } from 'fastify';
import { ProcessEngine } from '../../engines/process/engine.ts';
import { Billing } from '../../metering/billing.ts';
import { usageRules } from '../../metering/usage-rules.ts';
import { Accounts } from '../../resources/accounts/accounts.ts';
import { ensureRoot, SYSTEM } from '../../resources/accounts/root.ts';
import { Clusters } from '../../resources/clusters/clusters.ts';
import { Catalog } from '../../resources/catalog/catalog.ts';
import { defineDataCenter } from '../../resources/catalog/data-centers.ts';
import { virtualGpus } from '../../resources/catalog/virtual-gpus.ts';
import type { Context } from '../../resources/context.ts';
import { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { Endpoints } from '../../resources/endpoints/endpoints.ts';
import { Artifacts } from '../../resources/flash/artifacts.ts';
import { Flash } from '../../resources/flash/flash.ts';
import { Hub } from '../../resources/hub/hub.ts';
import { Gate } from '../../resources/keys/gate.ts';
import { Keys } from '../../resources/keys/keys.ts';
import type { NewKey } from '../../resources/keys/keys.ts';
import { LoginRequests } from '../../resources/keys/login-requests.ts';
import { Models } from '../../resources/models/models.ts';
import { Pods } from '../../resources/pods/pods.ts';
import { Delegations } from '../../resources/registries/delegations.ts';
import { Registries } from '../../resources/registries/registries.ts';
import type { Resources } from '../../resources/resources.ts';
import { Secrets } from '../../resources/secrets/secrets.ts';
import { Templates } from '../../resources/templates/templates.ts';
import { Volumes } from '../../resources/volumes/volumes.ts';
import { openStore } from '../../store/open.ts';
import { Changes } from '../../support/changes.ts';
import { ManualClock } from '../../support/clock.ts';
import { Sealer } from '../../support/crypto.ts';
import { randomIds } from '../../support/ids.ts';
import { artifactRoutes } from '../artifacts.ts';
import { graphqlFace } from './face.ts';
import type { GraphqlLimits } from './limits.ts';

/** What a client reads of an answer. */
export interface GraphqlAnswer {
  status: number;
  headers: LightMyRequestResponse['headers'];
  text: string;
  data: Record<string, unknown> | null | undefined;
  errors: {
    message: string;
    path?: (string | number)[];
    locations?: { line: number; column: number }[];
    extensions: { code: string; details?: string[] };
  }[];
  /** The message of the first error: the only one that clients show. */
  message: string;
  code: string;
}

export interface Ask {
  variables?: Record<string, unknown> | undefined;
  operationName?: string;
  /** The root account's if not said; null sends none. */
  key?: string | null;
}

const PRICES = {
  gpu: { 'NVIDIA GeForce RTX 4090': { secure: 0.5, community: 0.4, spot: 0.2, serverless: 0.6 } },
  cpu: { cpu3c: { secure: 0.04, serverless: 0.03 } },
  disk: { networkVolume: 0.07 },
};

export type Fixture = Awaited<ReturnType<typeof startGraphql>>;

export const DEFAULT_LIMITS: GraphqlLimits = { maxDepth: 20, maxFields: 2000 };

/** The face over real resources and SQLite, on a machine of two data centers with virtual GPUs. */
export async function startGraphql({
  limits = DEFAULT_LIMITS,
  replace = {},
}: {
  limits?: GraphqlLimits;
  replace?: Partial<Resources>;
} = {}) {
  const data = mkdtempSync(join(tmpdir(), 'berth-graphql-'));
  const store = await openStore({
    database: '',
    data,
    poolSize: 1,
    sealer: new Sealer(Buffer.alloc(32, 7)),
    usage: usageRules(PRICES),
    onError: (error) => logged.push(error.message),
  });
  const clock = new ManualClock();
  const context: Context = { store, clock, ids: randomIds };
  const { created: rootKey = '' } = await ensureRoot(context, undefined);
  const engine = new ProcessEngine({
    virtualGpus: virtualGpus('auto'),
    readMachine: () =>
      Promise.resolve({
        cpu: { model: 'AMD Sample 16-Core', cores: 16, threads: 32 },
        memoryInGb: 64,
        gpus: [],
        gpuProblem: null,
        gpusKnown: true,
      }),
  });
  const catalog = new Catalog({
    dataCenters: [
      defineDataCenter({ id: 'LOCAL-1' }),
      defineDataCenter({
        id: 'EU-RO-1',
        name: 'Bucharest',
        countryCode: 'RO',
        region: 'EUROPE',
        compliance: ['GDPR'],
      }),
    ],
    engines: new Map([['process', engine]]),
    prices: PRICES,
  });
  const gate = new Gate(context);
  const templates = new Templates(context);
  const pods = new Pods(context, {
    catalog,
    templates,
    prices: PRICES,
    engines: new Map([
      ['LOCAL-1', engine],
      ['EU-RO-1', engine],
    ]),
    changes: new Changes(),
    jupyterPassword: () => 'password',
    onChanged: () => undefined,
  });
  const keys = new Keys(context, () => gate.forget());
  const artifacts = new Artifacts({
    folder: join(data, 'artifacts'),
    masterKey: Buffer.alloc(32, 7),
    clock,
    origin: () => 'http://berth.test',
  });
  const resources: Resources = {
    accounts: new Accounts(context),
    keys,
    templates,
    endpoints: new Endpoints(context, {
      catalog,
      templates,
      directory: new EndpointDirectory(store.endpoints, clock),
      onRemoved: async () => undefined,
    }),
    pods,
    clusters: new Clusters(context, { pods, range: '10.65.0.0/16' }),
    volumes: new Volumes(context, catalog),
    registries: new Registries(context),
    delegations: new Delegations(context),
    secrets: new Secrets(context),
    catalog,
    hub: new Hub(fileURLToPath(new URL('../../../../../examples', import.meta.url))),
    billing: new Billing(store.ledger, clock),
    flash: new Flash(context, artifacts),
    models: new Models(context),
    loginRequests: new LoginRequests(context, keys),
    ...replace,
  };
  const logged: string[] = [];
  const app = Fastify({
    logger: { level: 'debug', stream: { write: (line: string) => void logged.push(line) } },
  });
  void app.register(artifactRoutes(artifacts));
  void app.register(graphqlFace(resources, gate, limits));
  await app.ready();

  const post = async (
    body: string | Buffer,
    headers: Record<string, string> = {},
    query: Record<string, string> = {},
  ): Promise<GraphqlAnswer> =>
    readAnswer(await app.inject({ method: 'POST', url: '/graphql', payload: body, headers, query }));

  const ask = (query: string, { key = rootKey, ...rest }: Ask = {}): Promise<GraphqlAnswer> =>
    post(JSON.stringify({ query, ...rest }), {
      'content-type': 'application/json',
      ...(key !== null && { authorization: `Bearer ${key}` }),
    });

  return {
    app,
    resources,
    clock,
    rootKey,
    /** Every line of the log. */
    logged,
    post,
    ask,
    /** Calls a mutation that takes one input object. */
    call: (
      mutation: string,
      type: string,
      selection: string,
      input: Record<string, unknown>,
      key = rootKey,
    ): Promise<GraphqlAnswer> =>
      ask(`mutation ($input: ${type}) { ${mutation}(input: $input) ${selection} }`, {
        variables: { input },
        key,
      }),
    /** The first key of a new account. */
    account: async (name: string): Promise<string> => (await resources.accounts.create(SYSTEM, name)).key,
    /** Another key of the root account. */
    key: async (fields: Omit<NewKey, 'name'>): Promise<string> =>
      (await resources.keys.create(SYSTEM, { name: 'another', ...fields })).key,
    close: async (): Promise<void> => {
      await app.close();
      await store.close();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

export type Shown = Record<string, unknown> & { id: string };

/** The one thing that an answer without errors holds. */
export function shown({ data, errors }: GraphqlAnswer): Shown {
  assert.deepEqual(errors, []);
  return Object.values(data ?? {})[0] as Shown;
}

function readAnswer(response: LightMyRequestResponse): GraphqlAnswer {
  const body: { data?: Record<string, unknown> | null; errors?: GraphqlAnswer['errors'] } =
    response.body === '' ? {} : response.json();
  const errors = body.errors ?? [];
  return {
    status: response.statusCode,
    headers: response.headers,
    text: response.body,
    data: body.data,
    errors,
    message: errors[0]?.message ?? '',
    code: errors[0]?.extensions.code ?? '',
  };
}
