import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from '../../domain/caller.ts';
import { ANY_POD } from '../../auth/authenticator.ts';
import { POD_ACCESS_DENIED } from '../../domain/caller.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerKey } from '../../auth/bearer.ts';
import { admitRequest } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import { parseJsonBody } from '../json-body.ts';
import { RequestContext } from './graphql-request-context.ts';
import type { Executor } from './graphql-executor.ts';
import { DocumentRejectedError, sendData, sendErrors } from './graphql.errors.ts';
import type { GraphqlLimits } from './graphql-limits.ts';

const PATH = '/graphql';
const BODY_LIMIT = 20 * 1024 * 1024;
const MAX_LOGGED_NAMES = 20;
const MAX_LOGGED_NAME_CHARS = 80;
/** What a pod may ask for with its own token: which pod it names is checked where it is looked up. */
const POD_TOKEN_FIELDS: ReadonlySet<string> = new Set([
  'pod',
  'podStop',
  'podResume',
  'podTerminate',
  '__typename',
]);

/** Serves GraphQL: one address, one method, a JSON body whatever its type is called. */
export function graphqlRoutes(
  resources: ResourceServices,
  authenticator: Authenticator,
  limits: GraphqlLimits,
) {
  let loading: Promise<Executor> | undefined;
  const executor = (): Promise<Executor> =>
    (loading ??= import('./graphql-executor.ts').then((loaded) => new loaded.Executor(resources, limits)));

  return async function mount(app: FastifyInstance): Promise<void> {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.setErrorHandler((error, request, reply) =>
      sendErrors(
        reply,
        error instanceof DocumentRejectedError
          ? error.errors
          : [{ error: toBerthError(error, request.log, request.id) }],
      ),
    );

    app.route({
      method: app.supportedMethods.filter((method) => method !== 'POST'),
      url: PATH,
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
      url: PATH,
      bodyLimit: BODY_LIMIT,
      onRequest: async (request) => {
        const announced = Number(request.headers['content-length'] ?? 0);
        if (announced > BODY_LIMIT)
          throw new BerthError(
            'too-large',
            `the body has ${announced} bytes; at most ${BODY_LIMIT} are accepted here`,
          );
        // Clients send any Content-Type; Fastify rejects malformed ones.
        delete request.raw.headers['content-type'];
      },
      // An invalid key is refused before the body is read. Without one, the document decides whether one is
      // needed.
      preParsing: async (request) => {
        const key = apiKeyOf(request);
        if (key !== undefined) callers.set(request, await authenticate(authenticator, request, key, 'read'));
      },
      handler: async (request, reply) => {
        const { query, variables, operationName } = parseRequestBody(request.body);
        const loaded = await executor();
        const reading = loaded.prepare(query, operationName);
        const context = new RequestContext(await authorizedCaller(authenticator, request, reading));
        const { data, errors, droppedFields } = await loaded.execute(reading, variables, context, (error) =>
          toBerthError(error, request.log, request.id),
        );
        if (droppedFields.length > 0)
          request.log.debug(
            {
              dropped: droppedFields
                .slice(0, MAX_LOGGED_NAMES)
                .map((name) => name.slice(0, MAX_LOGGED_NAME_CHARS)),
            },
            'unknown input fields were ignored',
          );
        return errors.length === 0 && data !== null ? sendData(reply, data) : sendErrors(reply, errors, data);
      },
    });
  };
}

const callers = new WeakMap<FastifyRequest, Caller>();

function authenticate(
  authenticator: Authenticator,
  request: FastifyRequest,
  key: string,
  need: 'read' | 'write',
): Promise<Caller> {
  return authenticator.authorize(
    key,
    { interface: 'graphql', scope: 'graphql', mode: need, requestId: request.id, podId: ANY_POD },
    ({ accountId }) => admitRequest(request.raw.socket, accountId),
  );
}

/** The caller, or undefined if the document needs no key. */
async function authorizedCaller(
  authenticator: Authenticator,
  request: FastifyRequest,
  { kind, open, fields }: { kind: 'query' | 'mutation'; open: boolean; fields: ReadonlySet<string> },
): Promise<Caller | undefined> {
  const key = apiKeyOf(request);
  if (key !== undefined) {
    const caller =
      kind === 'mutation' ? await authenticate(authenticator, request, key, 'write') : callers.get(request);
    if (caller?.podId === undefined || fields.isSubsetOf(POD_TOKEN_FIELDS)) return caller;
    // A pod may ask anonymously what needs no key.
    if (open) return undefined;
    throw new BerthError('forbidden', POD_ACCESS_DENIED);
  }
  if (open) return undefined;
  throw new BerthError(
    'unauthenticated',
    'this needs an API key: send it as "Authorization: Bearer <key>" or as ?api_key=<key>',
  );
}

/** A header that holds no key still counts as one, and as a wrong one. */
function apiKeyOf(request: FastifyRequest): string | undefined {
  const { authorization } = request.headers;
  const requested = (request.query as Record<string, string | string[] | undefined>)['api_key'];
  return (
    bearerKey(authorization) ??
    (Array.isArray(requested) ? requested[0] : requested) ??
    (authorization === undefined ? undefined : '')
  );
}

interface GraphqlRequestBody {
  query: string;
  variables: Record<string, unknown>;
  operationName: string | undefined;
}

function parseRequestBody(body: unknown): GraphqlRequestBody {
  const value = parseJsonBody(Buffer.isBuffer(body) ? body : new Uint8Array());
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
