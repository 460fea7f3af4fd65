import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Fastify from 'fastify';
import type { LightMyRequestResponse } from 'fastify';
import { ProcessEngine } from '../../engines/process/process-engine.ts';
import { Billing } from '../../metering/billing.ts';
import { usageRules } from '../../metering/usage-rules.ts';
import { Accounts } from '../../resources/accounts/accounts.ts';
import { ensureRootAccount } from '../../resources/accounts/root-account.ts';
import { Clusters } from '../../resources/clusters/clusters.ts';
import { Catalog } from '../../resources/catalog/catalog.ts';
import { defineDataCenter } from '../../domain/catalog/data-centers.ts';
import { virtualGpus } from '../../resources/catalog/virtual-gpus.ts';
import type { ResourceContext } from '../../resources/resource-context.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { Endpoints } from '../../resources/endpoints/endpoints.ts';
import { LocalArtifactFiles } from '../../resources/flash/artifact-files.ts';
import { FlashArtifacts } from '../../resources/flash/flash-artifacts.ts';
import { FlashApps } from '../../resources/flash/flash-apps.ts';
import { Hub } from '../../resources/hub/hub.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { ApiKeys } from '../../resources/keys/api-keys.ts';
import type { NewApiKey } from '../../resources/keys/api-keys.ts';
import { LoginRequests } from '../../resources/keys/login-requests.ts';
import { Models } from '../../resources/models/models.ts';
import { Pods } from '../../resources/pods/pods.ts';
import { RegistryDelegations } from '../../resources/registries/registry-delegations.ts';
import { Registries } from '../../resources/registries/registries.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { Secrets } from '../../resources/secrets/secrets.ts';
import { Templates } from '../../resources/templates/templates.ts';
import { Volumes } from '../../resources/volumes/volumes.ts';
import { openStore } from '../../store/open-store.ts';
import { ChangeNotifier } from '../../support/change-notifier.ts';
import { ManualClock } from '../../support/clock.ts';
import { Sealer } from '../../support/crypto.ts';
import { randomIds } from '../../support/ids.ts';
import { artifactRoutes } from '../artifacts.routes.ts';
import { graphqlRoutes } from './graphql.routes.ts';
import type { GraphqlLimits } from './graphql-limits.ts';
import { SYSTEM_CALLER } from '../../domain/caller.ts';
import { EventBus } from '../../support/event-bus.ts';

/** What a client reads of an answer. */
export interface GraphqlResponse {
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

export interface GraphqlRequestOptions {
  variables?: Record<string, unknown> | undefined;
  operationName?: string;
  /** Default: the root account's; null sends none. */
  key?: string | null;
}

const PRICES = {
  gpu: { 'NVIDIA GeForce RTX 4090': { secure: 0.5, community: 0.4, spot: 0.2, serverless: 0.6 } },
  cpu: { cpu3c: { secure: 0.04, serverless: 0.03 } },
  disk: { networkVolume: 0.07 },
};

export type GraphqlFixture = Awaited<ReturnType<typeof startGraphqlFixture>>;

const DEFAULT_LIMITS: GraphqlLimits = { maxDepth: 20, maxFields: 2000 };

/** The GraphQL routes over real services and SQLite, on a machine of two data centers with virtual GPUs. */
export async function startGraphqlFixture({
  limits = DEFAULT_LIMITS,
  replace = {},
}: {
  limits?: GraphqlLimits;
  replace?: Partial<ResourceServices>;
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
  const context: ResourceContext = { store, clock, ids: randomIds, events: new EventBus() };
  const { created: rootKey = '' } = await ensureRootAccount(context, undefined);
  const engine = new ProcessEngine({
    virtualGpus: virtualGpus('virtual'),
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
  const authenticator = new Authenticator(context);
  const templates = new Templates(context);
  const pods = new Pods(context, {
    catalog,
    templates,
    prices: PRICES,
    engines: new Map([
      ['LOCAL-1', engine],
      ['EU-RO-1', engine],
    ]),
    changes: new ChangeNotifier(),
    jupyterPassword: () => 'password',
  });
  const keys = new ApiKeys(context);
  const artifacts = new FlashArtifacts({
    files: new LocalArtifactFiles(join(data, 'artifacts')),
    masterKey: Buffer.alloc(32, 7),
    clock,
    origin: () => 'http://berth.test',
  });
  const resources: ResourceServices = {
    accounts: new Accounts(context),
    keys,
    templates,
    endpoints: new Endpoints(context, {
      catalog,
      templates,
      cache: new EndpointCache(store.endpoints, clock),
      onRemoved: async () => undefined,
    }),
    pods,
    clusters: new Clusters(context, { pods, networkRange: '10.65.0.0/16' }),
    volumes: new Volumes(context, catalog),
    registries: new Registries(context),
    delegations: new RegistryDelegations(context),
    secrets: new Secrets(context),
    catalog,
    hub: new Hub(fileURLToPath(new URL('../../../../../examples', import.meta.url))),
    billing: new Billing(store.ledger, clock),
    flash: new FlashApps(context, artifacts),
    models: new Models(context),
    loginRequests: new LoginRequests(context, keys),
    ...replace,
  };
  const logged: string[] = [];
  const app = Fastify({
    logger: { level: 'debug', stream: { write: (line: string) => void logged.push(line) } },
  });
  void app.register(artifactRoutes(artifacts));
  void app.register(graphqlRoutes(resources, authenticator, limits));
  await app.ready();

  const post = async (
    body: string | Buffer,
    headers: Record<string, string> = {},
    query: Record<string, string> = {},
  ): Promise<GraphqlResponse> =>
    readResponse(await app.inject({ method: 'POST', url: '/graphql', payload: body, headers, query }));

  const ask = (
    query: string,
    { key = rootKey, ...rest }: GraphqlRequestOptions = {},
  ): Promise<GraphqlResponse> =>
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
    ): Promise<GraphqlResponse> =>
      ask(`mutation ($input: ${type}) { ${mutation}(input: $input) ${selection} }`, {
        variables: { input },
        key,
      }),
    /** The first key of a new account. */
    account: async (name: string): Promise<string> =>
      (await resources.accounts.create(SYSTEM_CALLER, name)).key,
    /** Another key of the root account. */
    key: async (fields: Omit<NewApiKey, 'name'>): Promise<string> =>
      (await resources.keys.create(SYSTEM_CALLER, { name: 'another', ...fields })).key,
    close: async (): Promise<void> => {
      await app.close();
      await store.close();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

export type ResponseObject = Record<string, unknown> & { id: string };

/** The one thing that an answer without errors holds. */
export function onlyResult({ data, errors }: GraphqlResponse): ResponseObject {
  assert.deepEqual(errors, []);
  return Object.values(data ?? {})[0] as ResponseObject;
}

function readResponse(response: LightMyRequestResponse): GraphqlResponse {
  const body: { data?: Record<string, unknown> | null; errors?: GraphqlResponse['errors'] } =
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
