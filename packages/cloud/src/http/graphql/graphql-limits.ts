import { Kind, Lexer, Source, TokenKind } from 'graphql';
import type { DocumentNode, FragmentDefinitionNode, SelectionSetNode } from 'graphql';
import { ruleError } from '../../support/errors.ts';
import { checkText } from '../json-body.ts';

/** What one document may ask for. */
export interface GraphqlLimits {
  /** How deep its selections nest, with fragments spread out. */
  maxDepth: number;
  /** How many fields it selects in all, with fragments spread out. */
  maxFields: number;
}

/** Words and marks of a document. Values can be as long as the body allows: each is one. */
const MAX_TOKENS = 50_000;
/** Each may lead to the next, and what follows them does so step by step. */
const MAX_FRAGMENTS = 200;
/** How much deeper than its selections a document's values may nest. */
const VALUE_DEPTH = 64;

const OPENING: readonly string[] = [TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L];
const CLOSING: readonly string[] = [TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R];

/**
 * Goes over a document before it is parsed: a parser calls itself at every bracket, and many brackets would
 * end it.
 */
export function scanTokens(text: string, { maxDepth }: GraphqlLimits): { holdsText: boolean } {
  const lexer = new Lexer(new Source(text));
  let tokens = 0;
  let depth = 0;
  let holdsText = false;
  for (let token = lexer.advance(); token.kind !== TokenKind.EOF; token = lexer.advance()) {
    tokens += 1;
    if (tokens > MAX_TOKENS)
      throw ruleError(
        `the document has more than ${MAX_TOKENS} words and marks; send values as variables, or several documents`,
      );
    if (OPENING.includes(token.kind)) depth += 1;
    if (CLOSING.includes(token.kind)) depth -= 1;
    if (depth > maxDepth + VALUE_DEPTH)
      throw ruleError(
        `the document has brackets nested more than ${maxDepth + VALUE_DEPTH} deep; send a flatter one`,
      );
    if (token.kind === TokenKind.STRING || token.kind === TokenKind.BLOCK_STRING) {
      // An escape may have made what the body itself may not hold.
      checkText(token.value);
      holdsText = true;
    }
  }
  return { holdsText };
}

interface Size {
  depth: number;
  fields: number;
}

const EMPTY_SIZE: Size = { depth: 0, fields: 0 };

/**
 * Each fragment is measured once, however often it is spread: a few lines can stand for millions of fields.
 */
export function checkDocumentSize(document: DocumentNode, { maxDepth, maxFields }: GraphqlLimits): void {
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  if (fragments.size > MAX_FRAGMENTS)
    throw ruleError(`the document has ${fragments.size} fragments; at most ${MAX_FRAGMENTS} are read`);
  const measured = new Map<FragmentDefinitionNode, Size | 'begun'>();

  function ofFragment(name: string): Size {
    const fragment = fragments.get(name);
    if (fragment === undefined) return EMPTY_SIZE;
    const known = measured.get(fragment);
    if (known === 'begun')
      throw ruleError(`fragment ${name} spreads itself, directly or through others; it would never end`);
    if (known !== undefined) return known;
    measured.set(fragment, 'begun');
    const size = ofSelections(fragment.selectionSet);
    measured.set(fragment, size);
    return size;
  }

  function ofSelections(set: SelectionSetNode | undefined): Size {
    const total = { ...EMPTY_SIZE };
    for (const selection of set?.selections ?? []) {
      const own = selection.kind === Kind.FIELD ? 1 : 0;
      const inner =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? ofFragment(selection.name.value)
          : ofSelections(selection.selectionSet);
      total.fields += own + inner.fields;
      total.depth = Math.max(total.depth, own + inner.depth);
    }
    return total;
  }

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION)
      continue;
    const { depth, fields } =
      definition.kind === Kind.FRAGMENT_DEFINITION
        ? ofFragment(definition.name.value)
        : ofSelections(definition.selectionSet);
    if (depth > maxDepth)
      throw ruleError(
        `the document nests fields more than ${maxDepth} levels deep (graphql.maxDepth); ask for the ` +
          'inner ones in a request of their own',
      );
    if (fields > maxFields)
      throw ruleError(
        `the document selects more than ${maxFields} fields (graphql.maxFields), counted with its ` +
          'fragments spread out; select fewer, or send several requests',
      );
  }
}
