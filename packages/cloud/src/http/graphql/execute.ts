import { execute, NoUnusedVariablesRule, specifiedRules, validate, ValuesOfCorrectTypeRule } from 'graphql';
import type { DocumentNode, GraphQLError, OperationDefinitionNode } from 'graphql';
import type { Resources } from '../../resources/resources.ts';
import { digest } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import type { Asking } from './asking.ts';
import { operationOf, readDocument, rootFields } from './document.ts';
import { Refused } from './failures.ts';
import type { Finding } from './failures.ts';
import type { GraphqlLimits } from './limits.ts';
import { assemble, parts } from './schema.ts';
import type { Assembled } from './schema.ts';
import { tolerantDocument, tolerantVariables } from './tolerance.ts';
import type { Dropped } from './tolerance.ts';
import { valuesFit, variableFindings } from './values.ts';

/** What an input field that is not known was fed with is no longer used, and that is no mistake. */
const RULES = [
  ...specifiedRules.filter((rule) => rule !== ValuesOfCorrectTypeRule && rule !== NoUnusedVariablesRule),
  valuesFit,
];
/** Nobody reads more than the first few. */
const MAX_FINDINGS = 20;
/** Where the library's words say too little. */
const WORDS: Readonly<Record<string, string>> = {
  'Validation aborted.':
    'the document selects the same fields too often to be checked; select each of them once',
};
const MAX_KNOWN_DOCUMENTS = 200;
const LONGEST_KNOWN_DOCUMENT = 16 * 1024;

interface KnownDocument {
  document: DocumentNode;
  findings: Finding[];
  dropped: Dropped;
}

/** A document that was read, before it is decided whether its sender may ask for it. */
export interface Reading {
  kind: 'query' | 'mutation';
  /** Everything in it answers without a key. */
  open: boolean;
  /** The names of the fields that it begins with. */
  fields: ReadonlySet<string>;
  known: KnownDocument;
  operation: OperationDefinitionNode;
}

export interface Outcome {
  /** Null where nothing was answered. */
  data: Record<string, unknown> | null;
  findings: Finding[];
  /** Input fields that were ignored because they are not known. */
  dropped: string[];
}

/** The schema with the code behind it. Made at the first request: the GraphQL library is slow to load, and many servers never need it. */
export class Executor {
  readonly #assembled: Assembled;
  readonly #limits: GraphqlLimits;
  readonly #known = new Map<string, KnownDocument>();

  constructor(resources: Resources, limits: GraphqlLimits) {
    this.#assembled = assemble(parts(resources));
    this.#limits = limits;
  }

  read(text: string, operationName: string | undefined): Reading {
    const known = this.#document(text);
    const operation = operationOf(known.document, operationName);
    const kind = operation.operation === 'mutation' ? 'mutation' : 'query';
    const fields = rootFields(known.document, operation);
    return { kind, open: fields.isSubsetOf(this.#assembled.open[kind]), fields, known, operation };
  }

  /** `translate` makes one of our errors of whatever a field threw. */
  async run(
    { known, operation }: Reading,
    variables: Record<string, unknown>,
    asking: Asking,
    translate: (error: unknown) => BerthError,
  ): Promise<Outcome> {
    if (known.findings.length > 0) throw new Refused(known.findings);
    const { schema } = this.#assembled;
    const definitions = operation.variableDefinitions ?? [];
    const dropped = new Set(known.dropped);
    const variableValues = tolerantVariables(schema, definitions, variables, dropped);
    const findings = variableFindings(schema, definitions, variableValues);
    if (findings.length > 0) throw new Refused(findings.slice(0, MAX_FINDINGS));

    const result = await execute({
      schema,
      document: known.document,
      operationName: operation.name?.value,
      variableValues,
      contextValue: asking,
    });
    const errors = result.errors ?? [];
    return {
      data: answered(result.data, errors),
      findings: errors.slice(0, MAX_FINDINGS).map((error) => findingOf(error, translate)),
      dropped: [...dropped],
    };
  }

  /**
   * Documents that come again are kept, read and checked. One with texts in it is written for
   * one occasion, and may hold a password: it is not kept.
   */
  #document(text: string): KnownDocument {
    const name = digest(text);
    const known = this.#known.get(name);
    if (known !== undefined) {
      this.#known.delete(name);
      this.#known.set(name, known);
      return known;
    }
    const { document: written, holdsText } = readDocument(text, this.#limits);
    const { schema } = this.#assembled;
    const dropped: Dropped = new Set();
    const document = tolerantDocument(schema, written, dropped);
    const findings = validate(schema, document, RULES, { maxErrors: MAX_FINDINGS }).map(
      ({ message, locations }) => ({ error: new BerthError('schema', WORDS[message] ?? message), locations }),
    );
    const fresh = { document, findings, dropped };
    if (!holdsText && text.length <= LONGEST_KNOWN_DOCUMENT) this.#keep(name, fresh);
    return fresh;
  }

  #keep(name: string, known: KnownDocument): void {
    this.#known.set(name, known);
    const oldest = this.#known.keys().next();
    if (this.#known.size > MAX_KNOWN_DOCUMENTS && oldest.done !== true) this.#known.delete(oldest.value);
  }
}

/** Null where every root field failed: a client that looks at `data` first is not misled. */
function answered(
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

/** An error without an origin is the library's own and quotes what it was given; the checks before leave it no occasion. */
function findingOf(
  { originalError, path, locations }: GraphQLError,
  translate: (error: unknown) => BerthError,
): Finding {
  return {
    error: translate(originalError ?? new Error('the GraphQL library refused what had passed the checks')),
    path,
    locations,
  };
}
