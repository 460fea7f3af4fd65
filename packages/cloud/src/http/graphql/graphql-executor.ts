import { execute, NoUnusedVariablesRule, specifiedRules, validate, ValuesOfCorrectTypeRule } from 'graphql';
import type { DocumentNode, GraphQLError, OperationDefinitionNode } from 'graphql';
import type { ResourceServices } from '../../resources/resources.ts';
import { sha256Hex } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import type { RequestContext } from './graphql-request-context.ts';
import { selectOperation, parseDocument, rootFieldNames } from './graphql-document.ts';
import { DocumentRejectedError } from './graphql.errors.ts';
import type { LocatedError } from './graphql.errors.ts';
import type { GraphqlLimits } from './graphql-limits.ts';
import { buildExecutableSchema, graphqlModules } from './graphql-schema.ts';
import type { ExecutableSchema } from './graphql-schema.ts';
import { tolerantDocument, tolerantVariables } from './tolerant-input.ts';
import type { DroppedFields } from './tolerant-input.ts';
import { valuesOfCorrectType, variableErrors } from './graphql-value-validation.ts';
import { MAX_FINDINGS } from '../../domain/limits.ts';

/** What an input field that is not known was fed with is no longer used, and that is no mistake. */
const RULES = [
  ...specifiedRules.filter((rule) => rule !== ValuesOfCorrectTypeRule && rule !== NoUnusedVariablesRule),
  valuesOfCorrectType,
];
/** Where the library's words say too little. */
const CLEARER_MESSAGES: Readonly<Record<string, string>> = {
  'Validation aborted.':
    'the document selects the same fields too often to be checked; select each of them once',
};
const MAX_CACHED_DOCUMENTS = 200;
const MAX_CACHED_DOCUMENT_CHARS = 16 * 1024;

interface CachedDocument {
  document: DocumentNode;
  findings: LocatedError[];
  dropped: DroppedFields;
}

/** A document that was read, before it is decided whether its sender may ask for it. */
export interface PreparedOperation {
  kind: 'query' | 'mutation';
  /** Everything in it answers without a key. */
  open: boolean;
  /** The names of the fields that it begins with. */
  fields: ReadonlySet<string>;
  cached: CachedDocument;
  operation: OperationDefinitionNode;
}

export interface OperationResult {
  /** Null where nothing was answered. */
  data: Record<string, unknown> | null;
  errors: LocatedError[];
  /** Input fields that were ignored because they are not known. */
  droppedFields: string[];
}

/**
 * The schema with the code behind it. Made at the first request: the GraphQL library is slow to load, and
 * many servers never need it.
 */
export class Executor {
  readonly #assembled: ExecutableSchema;
  readonly #limits: GraphqlLimits;
  readonly #known = new Map<string, CachedDocument>();

  constructor(resources: ResourceServices, limits: GraphqlLimits) {
    this.#assembled = buildExecutableSchema(graphqlModules(resources));
    this.#limits = limits;
  }

  prepare(text: string, operationName: string | undefined): PreparedOperation {
    const known = this.#document(text);
    const operation = selectOperation(known.document, operationName);
    const kind = operation.operation === 'mutation' ? 'mutation' : 'query';
    const fields = rootFieldNames(known.document, operation);
    return {
      kind,
      open: fields.isSubsetOf(this.#assembled.publicFields[kind]),
      fields,
      cached: known,
      operation,
    };
  }

  /** `translate` makes one of our errors of whatever a field threw. */
  async execute(
    { cached, operation }: PreparedOperation,
    variables: Record<string, unknown>,
    context: RequestContext,
    translate: (error: unknown) => BerthError,
  ): Promise<OperationResult> {
    if (cached.findings.length > 0) throw new DocumentRejectedError(cached.findings);
    const { schema } = this.#assembled;
    const definitions = operation.variableDefinitions ?? [];
    const dropped = new Set(cached.dropped);
    const variableValues = tolerantVariables(schema, definitions, variables, dropped);
    const findings = variableErrors(schema, definitions, variableValues);
    if (findings.length > 0) throw new DocumentRejectedError(findings.slice(0, MAX_FINDINGS));

    const result = await execute({
      schema,
      document: cached.document,
      operationName: operation.name?.value,
      variableValues,
      contextValue: context,
    });
    const errors = result.errors ?? [];
    return {
      data: nullIfAllFailed(result.data, errors),
      errors: errors.slice(0, MAX_FINDINGS).map((error) => toLocatedError(error, translate)),
      droppedFields: [...dropped],
    };
  }

  /**
   * Documents that come again are kept, read and checked. One with texts in it is written for
   * one occasion, and may hold a password: it is not kept.
   */
  #document(text: string): CachedDocument {
    const name = sha256Hex(text);
    const known = this.#known.get(name);
    if (known !== undefined) {
      this.#known.delete(name);
      this.#known.set(name, known);
      return known;
    }
    const { document: written, containsStrings } = parseDocument(text, this.#limits);
    const { schema } = this.#assembled;
    const dropped: DroppedFields = new Set();
    const document = tolerantDocument(schema, written, dropped);
    const findings = validate(schema, document, RULES, { maxErrors: MAX_FINDINGS }).map(
      ({ message, locations }) => ({
        error: new BerthError('schema', CLEARER_MESSAGES[message] ?? message),
        locations,
      }),
    );
    const fresh = { document, findings, dropped };
    if (!containsStrings && text.length <= MAX_CACHED_DOCUMENT_CHARS) this.#keep(name, fresh);
    return fresh;
  }

  #keep(name: string, known: CachedDocument): void {
    this.#known.set(name, known);
    const oldest = this.#known.keys().next();
    if (this.#known.size > MAX_CACHED_DOCUMENTS && oldest.done !== true) this.#known.delete(oldest.value);
  }
}

/** Null where every root field failed: a client that reads `data` first is not misled. */
function nullIfAllFailed(
  data: Record<string, unknown> | null | undefined,
  errors: readonly GraphQLError[],
): Record<string, unknown> | null {
  const failed = new Set(errors.map(({ path }) => path?.[0]));
  return data === null ||
    data === undefined ||
    Object.keys(data).every((key) => failed.has(key) && data[key] === null)
    ? null
    : data;
}

/**
 * An error without an origin is the library's own and quotes what it was given; the checks before leave it no
 * occasion.
 */
function toLocatedError(
  { originalError, path, locations }: GraphQLError,
  translate: (error: unknown) => BerthError,
): LocatedError {
  return {
    error: translate(originalError ?? new Error('the GraphQL library refused what had passed the checks')),
    path,
    locations,
  };
}
