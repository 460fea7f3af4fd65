import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../domain/caller.ts';
import type { Authenticator, AccessRequest } from '../../auth/authenticator.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import { BerthError, schemaError } from '../../support/errors.ts';
import { bearerKey } from '../../auth/bearer.ts';
import { toBerthError } from '../http.errors.ts';
import { streamInTurns } from '../body-turns.ts';
import { allowLongUpload } from '../long-uploads.ts';
import { abortOnClose } from '../raw-http.ts';
import { admitRequest } from '../connection-limit.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import { checkText, parseJsonBody } from '../json-body.ts';
import { sendServerSentEvents } from './server-sent-events.ts';
import type { ServerSentEvent } from './server-sent-events.ts';
import type { Access, FileDownload, Operation, StreamMediaType } from './rest-operation.ts';
import { allowedMethods } from './allowed-methods.ts';
import { queryReader, validator } from './schema-validator.ts';

/** One REST interface: its operations, and how its responses differ from those of the others. */
export interface RestApi {
  prefix: string;
  interface: Caller['interface'] & ('rest-v1' | 'rest-v2');
  operations: Operation[];
  /** Bytes of body that are read, unless an operation says otherwise. */
  bodyLimit: number;
  /** Sends an error. Its status comes from the interface's own table. */
  sendError(reply: FastifyReply, error: BerthError): FastifyReply;
  /** Headers of every response. */
  headers?(): Record<string, string>;
  /** Counts the call; throws when the limit is reached. Returns headers for the response. */
  checkRateLimit?(caller: Caller): Record<string, string>;
  /** Where this returns an error, every operation answers with it. */
  disabledError?(): BerthError | undefined;
}

/** Serves an interface below its prefix. */
export function restApiRoutes(routes: RestApi, authenticator: Authenticator, openAccesses?: OpenAccesses) {
  return async function mount(app: FastifyInstance): Promise<void> {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
      try {
        done(null, body.length === 0 ? undefined : parseJsonBody(body as Buffer));
      } catch (error) {
        done(error as Error);
      }
    });
    // A stream: the body is never in memory as a whole; the handler reads it.
    for (const type of new Set(routes.operations.flatMap(({ upload }) => upload ?? [])))
      app.addContentTypeParser(type, (_request, body, done) => done(null, body));
    app.addHook('onRequest', async (request, reply) => {
      if (routes.headers !== undefined) reply.headers(routes.headers());
      const closed = routes.disabledError?.();
      if (closed !== undefined) throw closed;
      // Here and not in the handler below: that one would have the body read first.
      if (request.is404) throw noRouteError(routes, request);
    });
    app.setErrorHandler((error, request, reply) =>
      routes.sendError(reply, toBerthError(error, request.log, request.id)),
    );
    app.setNotFoundHandler((request, reply) => routes.sendError(reply, noRouteError(routes, request)));
    for (const operation of routes.operations)
      registerOperation(app, routes, operation, authenticator, openAccesses);
  };
}

function registerOperation(
  app: FastifyInstance,
  routes: RestApi,
  operation: Operation,
  authenticator: Authenticator,
  openAccesses: OpenAccesses | undefined,
): void {
  const limit =
    operation.upload === undefined ? (operation.bodyLimit ?? routes.bodyLimit) : Number.MAX_SAFE_INTEGER;
  app.route({
    method: operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    bodyLimit: limit,
    onRequest: async (request) => {
      const announced = Number(request.headers['content-length'] ?? 0);
      if (announced > limit)
        throw new BerthError(
          'too-large',
          `the body has ${announced} bytes; at most ${limit} are accepted here`,
        );
    },
    preParsing: async (request, reply) => {
      if (operation.access === 'open') return;
      const access: AccessRequest = {
        interface: routes.interface,
        scope: 'rest',
        mode: operation.access === 'read' ? 'read' : 'write',
        requestId: request.id,
        ...(operation.podIdParam !== undefined && {
          podId: (request.params as Record<string, string>)[operation.podIdParam] ?? '',
        }),
      };
      const key = bearerKey(request.headers.authorization);
      const caller = await authenticator.authorize(key, access, (known) => {
        admitRequest(request.raw.socket, known.accountId);
        reply.headers(routes.checkRateLimit?.(known) ?? {});
      });
      if (operation.endpointIdParam !== undefined)
        await authenticator.authorize(key, {
          ...access,
          scope: 'serverless',
          endpointId: (request.params as Record<string, string>)[operation.endpointIdParam] ?? '',
        });
      checkOperator(operation.access, caller);
      callers.set(request, caller);
      if (openAccesses !== undefined)
        endWhenRevoked(openAccesses, {
          response: reply.raw,
          credential: key ?? '',
          expiresAt: caller.expiresAt ?? null,
          authorize: () => authenticator.authorize(key, access),
          sendError: (error) => void routes.sendError(reply, error),
        });
    },
    handler: async (request, reply) => {
      if (operation.upload !== undefined) allowLongUpload(request.raw.socket);
      const result = await operation.handle({
        caller: callers.get(request) ?? ANONYMOUS_CALLER,
        params: readParams(request.params as Record<string, string>),
        query: readQuery(operation, request),
        body: readBody(operation, request.body),
        upload: readUpload(operation, request),
        uploadLength: readLength(request.headers['content-length']),
        lastEventId: request.headers['last-event-id'] as string | undefined,
        signal: abortOnClose(reply.raw),
      });
      if (operation.eventStream === true)
        return sendServerSentEvents(reply, result as AsyncIterable<ServerSentEvent>);
      if (operation.status === 204 || (operation.allowNoContent === true && result === undefined))
        return reply.code(204).send();
      reply.code(operation.status).headers(operation.headers ?? {});
      if (operation.download !== undefined) return sendDownload(reply, operation.download, result);
      if (operation.text !== undefined) return reply.type(`${operation.text}; charset=utf-8`).send(result);
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(result));
    },
  });
}

const callers = new WeakMap<FastifyRequest, Caller>();

/** The caller of an operation that is open to all. */
const ANONYMOUS_CALLER: Caller = {
  accountId: '',
  keyId: null,
  operator: false,
  fullAccess: false,
  interface: 'system',
  requestId: '',
};

function checkOperator(access: Access, caller: Caller): void {
  if (access === 'operator' && !caller.operator)
    throw new BerthError('forbidden', 'access denied: this needs a key with full access of the root account');
}

function readParams(params: Record<string, string>): Record<string, string> {
  for (const value of Object.values(params)) checkText(value);
  return params;
}

function readQuery(operation: Operation, request: FastifyRequest): unknown {
  if (operation.query === undefined) return {};
  const raw = request.query as Record<string, string | string[]>;
  for (const value of Object.values(raw).flat()) checkText(value);
  const { value, findings } = queryReader(operation.query)(raw);
  if (findings.length > 0 && operation.queryErrorsAreRuleErrors === true)
    throw new BerthError('rule', findings.join('; '), { details: findings });
  if (findings.length > 0) throw schemaError(findings);
  return value;
}

function readUpload(operation: Operation, { raw, body }: FastifyRequest): Readable {
  if (operation.upload === undefined) return EMPTY_STREAM;
  if (!(body instanceof Readable)) throw new BerthError('media-type', `send the body as ${operation.upload}`);
  return streamInTurns(raw, body);
}

const EMPTY_STREAM = Readable.from([]);

function readLength(header: string | undefined): number | undefined {
  return header === undefined ? undefined : Number(header);
}

/** A browser saves a file and never shows it: it may be of any type, and anybody may have written it. */
function sendDownload(reply: FastifyReply, type: StreamMediaType, result: unknown): FastifyReply {
  if (result instanceof Readable) return reply.type(type).send(result);
  const { name, size, content } = result as FileDownload;
  const fallback = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  return reply
    .type(type)
    .headers({
      'content-length': size,
      'content-disposition': `attachment; filename="${fallback}"; filename*=UTF-8''${encodeRfc5987(name)}`,
      'x-content-type-options': 'nosniff',
    })
    .send(content);
}

function encodeRfc5987(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function readBody(operation: Operation, body: unknown): unknown {
  if (operation.body === undefined) return undefined;
  if (body instanceof Readable) throw new BerthError('media-type', 'send the body as application/json');
  if (body === undefined) throw schemaError(['$: a JSON body is required']);
  const findings = validator(operation.body)(body);
  if (findings.length > 0) throw schemaError(findings);
  return body;
}

/** The address is not known, or it does not have the method. */
function noRouteError(routes: RestApi, request: FastifyRequest): BerthError {
  const allow = allowedMethods(routes.operations, pathAfterPrefix(routes.prefix, request.url));
  if (allow.length === 0) return new BerthError('no-route', 'no such address');
  return new BerthError('method', `${request.method} is not allowed here; allowed: ${allow.join(', ')}`, {
    headers: { allow: allow.join(', ') },
  });
}

function pathAfterPrefix(prefix: string, url: string): string {
  return (url.split('?')[0] ?? '').slice(prefix.length);
}
