import type { Readable } from 'node:stream';
import type { Caller } from '../../domain/caller.ts';
import type { Schema, Static } from './json-schema.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * What a key needs for an operation: reading, writing, being this installation's operator, or nothing at all.
 */
export type Access = 'open' | 'read' | 'write' | 'operator';

/** One operation of a REST interface: enough to serve it, to check it and to document it. */
export interface Operation {
  /** The name in the OpenAPI document; unique within its interface. */
  id: string;
  method: Method;
  /** Below the interface's prefix, parameters in braces: `/templates/{id}`. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  access: Access;
  params?: Schema;
  /** The parameter that names a pod, where that pod's own token opens this too. */
  podIdParam?: string;
  /**
   * The parameter that names an endpoint whose jobs this is about: the key needs the serverless scope for it
   * as well.
   */
  endpointIdParam?: string;
  query?: Schema;
  /** A query that does not match its schema is refused as a rule error. */
  queryErrorsAreRuleErrors?: true;
  body?: Schema;
  /** Where the body may be larger than the interface's own limit, in bytes. */
  bodyLimit?: number;
  /** The status of success and what it carries; nothing for 204. */
  status: 200 | 201 | 204;
  response?: Schema;
  /** May answer 204 instead, when there is no content. */
  allowNoContent?: true;
  /** Answers with text of this media type instead of JSON: `handle` gives it whole. */
  text?: 'text/html' | 'text/javascript' | 'text/csv';
  /** Headers of the response when it succeeds. */
  headers?: Readonly<Record<string, string>>;
  /** Answers server-sent events: `handle` gives them one by one, as long as somebody reads. */
  eventStream?: true;
  /** Takes a body of this media type, of any length, as a stream. */
  upload?: StreamMediaType;
  /** Answers with a stream of this media type: `handle` gives a Readable, or a FileDownload. */
  download?: StreamMediaType;
  /** Error statuses beyond those that every operation has. */
  errorStatuses?: number[];
  handle(request: OperationCall<unknown, unknown, unknown>): Promise<unknown>;
}

/** Media types that are streamed. */
export type StreamMediaType = 'application/x-tar' | 'application/octet-stream';

/** A file that is sent under its own name. */
export interface FileDownload {
  name: string;
  size: number;
  content: Readable;
}

/** What the handler of an operation receives. */
export interface OperationCall<P, Q, B> {
  caller: Caller;
  params: P;
  query: Q;
  body: B;
  /** The body of an operation that takes a stream. */
  upload: Readable;
  /** How many bytes it has, where the client says so. */
  uploadLength: number | undefined;
  /** `Last-Event-ID`, of a reader of events that reconnects. */
  lastEventId: string | undefined;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
}

type ValueOf<S> = S extends Schema ? Static<S> : Record<never, never>;

/** Ties the schemas of an operation to the types that its code sees. */
export function operation<
  P extends Schema | undefined,
  Q extends Schema | undefined,
  B extends Schema | undefined,
  A extends Schema | undefined,
  E extends true | undefined = undefined,
>(
  definition: Omit<Operation, 'params' | 'query' | 'body' | 'response' | 'allowNoContent' | 'handle'> & {
    params?: P;
    query?: Q;
    body?: B;
    response?: A;
    allowNoContent?: E;
    handle(
      call: OperationCall<ValueOf<P>, ValueOf<Q>, ValueOf<B>>,
    ): Promise<(A extends Schema ? Static<A> : void) | (E extends true ? undefined : never)>;
  },
): Operation {
  return definition as unknown as Operation;
}
