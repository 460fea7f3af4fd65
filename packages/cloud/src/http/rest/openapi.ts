import { STATUS_CODES } from '../../support/node-http.ts';
import type { Access, Operation } from './rest-operation.ts';
import { propertiesOf, isCommaList, schemaName } from './json-schema.ts';
import type { Schema } from './json-schema.ts';

/** The OpenAPI 3.1 description of one REST interface, made from its operations alone. */
export interface OpenApiDocument {
  openapi: '3.1.0';
  info: {
    title: string;
    version: string;
    description: string;
    license: { name: string; identifier: string };
  };
  servers: { url: string }[];
  security: Requirement[];
  tags: Tag[];
  paths: Record<string, Record<string, OperationObject>>;
  components: {
    securitySchemes: Record<string, { type: 'http'; scheme: 'bearer'; description: string }>;
    schemas: Record<string, JsonSchema>;
    responses: Record<string, ResponseObject>;
    headers: Record<string, HeaderObject>;
  };
}

export type JsonSchema = Record<string, unknown>;
export interface Reference {
  $ref: string;
}
export interface Tag {
  name: string;
  description?: string;
}
export interface HeaderObject {
  description: string;
  schema: JsonSchema;
}
type Requirement = Record<string, string[]>;
type Content = Record<string, { schema: JsonSchema }>;

export interface ParameterObject {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  description?: string;
  style?: 'form';
  explode?: boolean;
  schema: JsonSchema;
}

export interface ResponseObject {
  description: string;
  headers?: Record<string, HeaderObject | Reference>;
  content?: Content;
}

export interface OperationObject {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  /** What the key needs. */
  'x-berth-access': Access;
  security?: Requirement[];
  parameters?: ParameterObject[];
  requestBody?: { required: boolean; description?: string; content: Content };
  responses: Record<string, ResponseObject | Reference>;
}

/** How the responses of some operations differ from those of the rest of the document. */
export interface ResponseFormat {
  /** Stands before the names of its error responses among the components. */
  name: string;
  errorSchema: Schema;
  errorMediaType: string;
  commonErrorStatuses: readonly number[];
}

/** An operation as the document describes it. */
export interface DocumentedOperation extends Omit<Operation, 'handle'> {
  /** Left out: the format of the document. */
  format?: ResponseFormat;
  /** Answers server-sent events where the client accepts them, else JSON. */
  alsoEventStream?: true;
}

export interface OpenApiOptions {
  title: string;
  version: string;
  description: string;
  /**
   * Stands before the path of each operation: `/v2`, or nothing where the server's address already ends in
   * it.
   */
  prefix: string;
  /** What the paths are below. */
  serverUrl: string;
  operations: readonly DocumentedOperation[];
  errorSchema: Schema;
  errorMediaType: string;
  /**
   * The error statuses that every operation may have. An open one has neither 401 nor 403 unless it names
   * them itself.
   */
  commonErrorStatuses: readonly number[];
  securityDescription: string;
  /** In the order in which they shall stand. */
  tags: readonly Tag[];
  /** Headers of every response, such as those of the rate limit. */
  responseHeaders?: Readonly<Record<string, { description: string; schema: Schema }>>;
}

const LICENSE = { name: 'Apache License 2.0', identifier: 'Apache-2.0' };
const SECURITY_SCHEME = 'bearerAuth';
const JSON_TYPE = 'application/json';
const NO_CONTENT_DESCRIPTION = 'Done; there is no content.';

export function openApiDocument(options: OpenApiOptions): OpenApiDocument {
  const schemas = new Components();
  const headers = Object.entries(options.responseHeaders ?? {}).map(
    ([name, header]): [string, HeaderObject] => [
      name,
      { description: header.description, schema: schemas.reference(header.schema) },
    ],
  );
  const headerReferences = Object.fromEntries(
    headers.map(([name]) => [name, { $ref: `#/components/headers/${name}` }]),
  );
  const withHeaders = (response: ResponseObject): ResponseObject => {
    const all = { ...headerReferences, ...response.headers };
    return {
      description: response.description,
      ...(Object.keys(all).length > 0 && { headers: all }),
      ...(response.content && { content: response.content }),
    };
  };

  const own: ResponseFormat = { ...options, name: '' };
  const paths: OpenApiDocument['paths'] = {};
  const errorResponses = new Map<string, { status: number; response: ResponseObject }>();
  for (const operation of options.operations) {
    const { format = own } = operation;
    const described = format === own ? withHeaders : (response: ResponseObject) => response;
    const responses: OperationObject['responses'] = {
      [operation.status]: described(successResponse(operation, schemas)),
    };
    if (operation.allowNoContent === true)
      responses[204] = described({ description: NO_CONTENT_DESCRIPTION });
    for (const status of errorStatusesOf(operation, format.commonErrorStatuses)) {
      const name = format.name + errorResponseName(status);
      const content = { [format.errorMediaType]: { schema: schemas.reference(format.errorSchema) } };
      errorResponses.set(name, { status, response: described({ ...errorResponse(status), content }) });
      responses[status] = { $ref: `#/components/responses/${name}` };
    }
    const path = (paths[options.prefix + operation.path] ??= {});
    const method = operation.method.toLowerCase();
    if (path[method] !== undefined)
      throw new Error(`${operation.method} ${operation.path} is described twice`);
    path[method] = { ...requestObject(operation, schemas), responses };
  }

  return {
    openapi: '3.1.0',
    info: {
      title: options.title,
      version: options.version,
      description: options.description,
      license: LICENSE,
    },
    servers: [{ url: options.serverUrl.replace(/(.)\/+$/, '$1') }],
    security: [{ [SECURITY_SCHEME]: [] }],
    tags: tagsInUse(options),
    paths,
    components: {
      securitySchemes: {
        [SECURITY_SCHEME]: { type: 'http', scheme: 'bearer', description: options.securityDescription },
      },
      schemas: schemas.sorted(),
      responses: Object.fromEntries(
        [...errorResponses]
          .sort(([, a], [, b]) => a.status - b.status)
          .map(([name, { response }]) => [name, response]),
      ),
      headers: Object.fromEntries(headers),
    },
  };
}

/** Named schemas, wherever they are met, move to one place and leave a reference behind. */
class Components {
  readonly #schemas = new Map<string, JsonSchema>();
  /** By the schema itself, so that one that is used often is not walked again. */
  readonly #known = new Set<Schema>();

  reference(schema: Schema): JsonSchema {
    const name = schemaName(schema);
    if (name === undefined) return this.#copy(schema);
    if (!this.#known.has(schema)) {
      this.#known.add(schema);
      const copy = this.#copy(schema);
      const other = this.#schemas.get(name);
      if (other !== undefined && JSON.stringify(other) !== JSON.stringify(copy))
        throw new Error(`two different schemas are named ${name}`);
      this.#schemas.set(name, copy);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  sorted(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #copy(schema: Schema): JsonSchema {
    return Object.fromEntries(
      Object.entries(schema)
        .filter(([, value]) => value !== undefined)
        .map(([keyword, value]) => [keyword, this.#copyValue(value)]),
    );
  }

  /**
   * Keywords hold schemas, lists and maps of schemas, or plain data; only a named schema is treated apart.
   */
  #copyValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#copyValue(item));
    return typeof value === 'object' && value !== null ? this.reference(value as Schema) : value;
  }
}

function requestObject(
  operation: DocumentedOperation,
  schemas: Components,
): Omit<OperationObject, 'responses'> {
  const parameters = [...pathParameters(operation, schemas), ...queryParameters(operation, schemas)];
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    tags: [operation.tag],
    'x-berth-access': operation.access,
    ...(operation.access === 'open' && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(operation.upload !== undefined && {
      requestBody: {
        required: true,
        content: { [operation.upload]: { schema: { type: 'string', format: 'binary' } } },
      },
    }),
    ...(operation.body !== undefined && {
      requestBody: {
        required: true,
        ...(operation.bodyLimit !== undefined && {
          description: `At most ${operation.bodyLimit.toLocaleString('en')} bytes.`,
        }),
        content: { [JSON_TYPE]: { schema: schemas.reference(operation.body) } },
      },
    }),
  };
}

function pathParameters(operation: DocumentedOperation, schemas: Components): ParameterObject[] {
  const names = [...operation.path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]!);
  const fields = propertiesOf(operation.params ?? {});
  const stray = Object.keys(fields).find((name) => !names.includes(name));
  if (stray !== undefined)
    throw new Error(`${operation.id}: the path ${operation.path} has no parameter ${stray}`);
  return names.map((name) => ({
    name,
    in: 'path',
    required: true,
    ...parameterSchema(fields[name] ?? { type: 'string' }, schemas),
  }));
}

function queryParameters(operation: DocumentedOperation, schemas: Components): ParameterObject[] {
  const query = operation.query ?? {};
  const required = (query['required'] ?? []) as string[];
  return Object.entries(propertiesOf(query)).map(([name, field]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...([field['type']].flat().includes('array') && { style: 'form', explode: !isCommaList(field) }),
    ...parameterSchema(field, schemas),
  }));
}

/**
 * A parameter's description stands at the parameter, where tools look for it, and not a second time in its
 * schema.
 */
function parameterSchema(field: Schema, schemas: Components): { description?: string; schema: JsonSchema } {
  const { description, ...schema } = field;
  if (typeof description !== 'string') return { schema: schemas.reference(field) };
  return {
    description,
    schema: schemaName(field) === undefined ? schemas.reference(schema) : schemas.reference(field),
  };
}

function successResponse(operation: DocumentedOperation, schemas: Components): ResponseObject {
  const description = { 200: 'Done.', 201: 'Created.', 204: NO_CONTENT_DESCRIPTION }[operation.status];
  if (operation.text !== undefined)
    return { description, content: { [operation.text]: { schema: { type: 'string' } } } };
  if (operation.download !== undefined)
    return {
      description,
      content: { [operation.download]: { schema: { type: 'string', format: 'binary' } } },
    };
  if (operation.eventStream === true)
    return { description, content: { 'text/event-stream': { schema: { type: 'string' } } } };
  if (operation.response === undefined) return { description };
  return {
    description,
    content: {
      [JSON_TYPE]: { schema: schemas.reference(operation.response) },
      ...(operation.alsoEventStream === true && { 'text/event-stream': { schema: { type: 'string' } } }),
    },
  };
}

function errorStatusesOf(operation: DocumentedOperation, common: readonly number[]): number[] {
  const possible =
    operation.access === 'open' ? common.filter((status) => status !== 401 && status !== 403) : common;
  return [...new Set([...possible, ...(operation.errorStatuses ?? [])])].sort((a, b) => a - b);
}

function errorResponseName(status: number): string {
  return (STATUS_CODES[status] ?? `Status${status}`).replace(/[^A-Za-z]/g, '');
}

const ERROR_DESCRIPTIONS: Record<number, string> = {
  400: 'The request cannot be read, or a rule forbids it.',
  401: 'No key was sent, or one that is unknown, expired, disabled or revoked.',
  402: 'The spending limit of the account or the installation is reached.',
  403: 'The key is valid, but it may not do this, or a limit on the number of things is reached.',
  404: 'There is no such thing, or it belongs to another account.',
  405: 'This address does not know that method.',
  409: 'Something else has this name or uses this, or its present state does not allow it.',
  410: 'The operator has turned this interface off.',
  413: 'The body is over its limit.',
  415: 'The body is of a type that is not read here.',
  422: 'A field is missing, unknown or not of the right form.',
  429: 'Too many requests. Try again later.',
  500: 'A defect of this server.',
  503: 'A part that is needed does not answer now. Try again later.',
  507: 'A limit of the account or the installation on bytes is reached.',
};

function errorResponse(status: number): ResponseObject {
  const description = ERROR_DESCRIPTIONS[status] ?? STATUS_CODES[status] ?? `Status ${status}`;
  if (status === 405)
    return {
      description,
      headers: { Allow: { description: 'The methods that it does know.', schema: { type: 'string' } } },
    };
  if (status === 429)
    return {
      description,
      headers: { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } },
    };
  return { description };
}

function tagsInUse(options: OpenApiOptions): Tag[] {
  const used = new Set(options.operations.map((operation) => operation.tag));
  const known = options.tags.filter((tag) => used.has(tag.name));
  return [
    ...known,
    ...[...used].filter((name) => !known.some((tag) => tag.name === name)).map((name) => ({ name })),
  ];
}
