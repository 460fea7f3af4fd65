import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from '../../resources/caller.ts';
import { ANY_POD, POD_REFUSAL } from '../../resources/keys/gate.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import type { Resources } from '../../resources/resources.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerKey } from '../bearer.ts';
import { asBerthError } from '../failures.ts';
import { parseJson } from '../json.ts';
import { Asking } from './asking.ts';
import type { Executor } from './execute.ts';
import { Refused, sendData, sendFindings } from './failures.ts';
import type { GraphqlLimits } from './limits.ts';

const ADDRESS = '/graphql';
const BODY_LIMIT = 20 * 1024 * 1024;
const MAX_LOGGED_NAMES = 20;
const LONGEST_LOGGED_NAME = 80;
/** What a pod may ask for with its own token: which pod it names is checked where it is looked up. */
const OF_PODS: ReadonlySet<string> = new Set(['pod', 'podStop', 'podResume', 'podTerminate', '__typename']);

/** Serves GraphQL: one address, one method, a JSON body whatever its type is called. */
export function graphqlFace(resources: Resources, gate: Gate, limits: GraphqlLimits) {
  let loading: Promise<Executor> | undefined;
  const executor = (): Promise<Executor> =>
    (loading ??= import('./execute.ts').then((loaded) => new loaded.Executor(resources, limits)));

  return async function mount(app: FastifyInstance): Promise<void> {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.setErrorHandler((error, request, reply) =>
      sendFindings(
        reply,
        error instanceof Refused ? error.findings : [{ error: asBerthError(error, request.log, request.id) }],
      ),
    );

    app.route({
      method: app.supportedMethods.filter((method) => method !== 'POST'),
      url: ADDRESS,
      exposeHeadRoute: false,
      onRequest: async (request) => {
        throw new BerthError('method', `${request.method} is not allowed here; send the document as POST`, {
          headers: { allow: 'POST' },
        });
      },
      handler: () => undefined,
    });

    app.route({
      method: 'POST',
      url: ADDRESS,
      bodyLimit: BODY_LIMIT,
      onRequest: async (request) => {
        const announced = Number(request.headers['content-length'] ?? 0);
        if (announced > BODY_LIMIT)
          throw new BerthError(
            'too-large',
            `the body has ${announced} bytes; at most ${BODY_LIMIT} are read here`,
          );
        // Clients send this and that, and the framework refuses what is no type at all.
        delete request.raw.headers['content-type'];
      },
      // A key that opens nothing is refused before the body is read. Without one, the document says whether one is needed.
      preParsing: async (request) => {
        const key = keyOf(request);
        if (key !== undefined) callers.set(request, await admit(gate, request, key, 'read'));
      },
      handler: async (request, reply) => {
        const { query, variables, operationName } = readQuestion(request.body);
        const loaded = await executor();
        const reading = loaded.read(query, operationName);
        const asking = new Asking(await callerOf(gate, request, reading));
        const { data, findings, dropped } = await loaded.run(reading, variables, asking, (error) =>
          asBerthError(error, request.log, request.id),
        );
        if (dropped.length > 0)
          request.log.debug(
            { dropped: dropped.slice(0, MAX_LOGGED_NAMES).map((name) => name.slice(0, LONGEST_LOGGED_NAME)) },
            'unknown input fields were ignored',
          );
        return findings.length === 0 && data !== null
          ? sendData(reply, data)
          : sendFindings(reply, findings, data);
      },
    });
  };
}

const callers = new WeakMap<FastifyRequest, Caller>();

function admit(gate: Gate, request: FastifyRequest, key: string, need: 'read' | 'write'): Promise<Caller> {
  return gate.admit(key, {
    interface: 'graphql',
    family: 'graphql',
    need,
    requestId: request.id,
    podId: ANY_POD,
  });
}

/** Whoever may have this document answered; undefined is anyone. */
async function callerOf(
  gate: Gate,
  request: FastifyRequest,
  { kind, open, fields }: { kind: 'query' | 'mutation'; open: boolean; fields: ReadonlySet<string> },
): Promise<Caller | undefined> {
  const key = keyOf(request);
  if (key !== undefined) {
    const caller = kind === 'mutation' ? await admit(gate, request, key, 'write') : callers.get(request);
    if (caller?.podId === undefined || fields.isSubsetOf(OF_PODS)) return caller;
    // What anybody may ask, a pod may ask as anybody.
    if (open) return undefined;
    throw new BerthError('forbidden', POD_REFUSAL);
  }
  if (open) return undefined;
  throw new BerthError(
    'unauthenticated',
    'this needs an API key: send it as "Authorization: Bearer <key>" or as ?api_key=<key>',
  );
}

/** A header that holds no key still counts as one, and as a wrong one. */
function keyOf(request: FastifyRequest): string | undefined {
  const { authorization } = request.headers;
  const asked = (request.query as Record<string, string | string[] | undefined>)['api_key'];
  return (
    bearerKey(authorization) ??
    (Array.isArray(asked) ? asked[0] : asked) ??
    (authorization === undefined ? undefined : '')
  );
}

interface Question {
  query: string;
  variables: Record<string, unknown>;
  operationName: string | undefined;
}

function readQuestion(body: unknown): Question {
  const value = parseJson(Buffer.isBuffer(body) ? body : new Uint8Array());
  if (!isObject(value))
    throw new BerthError(
      'schema',
      'the body must be a JSON object with the document in "query"; several operations are several requests',
    );
  const { query, variables, operationName } = value;
  if (typeof query !== 'string' || query.trim() === '')
    throw new BerthError('schema', 'the body has no "query": send the GraphQL document in it, as text');
  if (variables !== undefined && variables !== null && !isObject(variables))
    throw new BerthError('schema', '"variables" must be a JSON object');
  if (operationName !== undefined && operationName !== null && typeof operationName !== 'string')
    throw new BerthError('schema', '"operationName" must be text');
  return { query, variables: variables ?? {}, operationName: operationName || undefined };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
