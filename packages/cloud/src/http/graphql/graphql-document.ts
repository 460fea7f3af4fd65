import { GraphQLError, Kind, parse } from 'graphql';
import type {
  DocumentNode,
  FragmentDefinitionNode,
  OperationDefinitionNode,
  SelectionSetNode,
} from 'graphql';
import { BerthError } from '../../support/errors.ts';
import { DocumentRejectedError } from './graphql.errors.ts';
import { checkDocumentSize, scanTokens } from './graphql-limits.ts';
import type { GraphqlLimits } from './graphql-limits.ts';

export interface ParsedDocument {
  document: DocumentNode;
  /** Texts stand in it, and any of them may be a password. */
  containsStrings: boolean;
}

/** Parses a document that is within its limits. */
export function parseDocument(text: string, limits: GraphqlLimits): ParsedDocument {
  try {
    const { holdsText } = scanTokens(text, limits);
    const document = parse(text);
    checkDocumentSize(document, limits);
    return { document, containsStrings: holdsText };
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new DocumentRejectedError([
      { error: new BerthError('malformed', redactParserMessage(error.message)), locations: error.locations },
    ]);
  }
}

/**
 * The parser quotes the word it stopped at, which may be a password. The location stands beside the message.
 */
function redactParserMessage(message: string): string {
  return message
    .replace(/\b(Name|String|BlockString|Int|Float|Comment) "[\s\S]*"/, '$1')
    .replace(/\b(sequence|digit but got|digit after 0|character within String): [\s\S]*$/, '$1.');
}

/** The operation that a request means: the one that it names, or the only one there is. */
export function selectOperation(document: DocumentNode, name: string | undefined): OperationDefinitionNode {
  const operations = document.definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  );
  if (name === undefined && operations.length > 1)
    throw new BerthError(
      'schema',
      `the document contains ${operations.length} operations; name one in operationName`,
    );
  const operation =
    name === undefined ? operations[0] : operations.find((candidate) => candidate.name?.value === name);
  if (operation === undefined)
    throw new BerthError(
      'schema',
      name === undefined
        ? 'the document contains no operation'
        : 'the document contains no operation with the name in operationName',
    );
  if (operation.operation === 'subscription')
    throw new BerthError('schema', 'subscriptions are not supported; use a query');
  return operation;
}

/** The names of the fields that an operation begins with, whatever it calls them. */
export function rootFieldNames(document: DocumentNode, operation: OperationDefinitionNode): Set<string> {
  const fragments = document.definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  const names = new Set<string>();
  const seen = new Set<FragmentDefinitionNode>();
  const collect = (set: SelectionSetNode): void => {
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) names.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else {
        for (const fragment of fragments) {
          if (fragment.name.value !== selection.name.value || seen.has(fragment)) continue;
          seen.add(fragment);
          collect(fragment.selectionSet);
        }
      }
    }
  };
  collect(operation.selectionSet);
  return names;
}
