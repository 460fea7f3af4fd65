import {
  coerceInputValue,
  getNullableType,
  GraphQLError,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  Kind,
  typeFromAST,
} from 'graphql';
import type {
  ASTNode,
  ASTVisitor,
  GraphQLInputType,
  GraphQLSchema,
  NamedTypeNode,
  ValidationContext,
  ValueNode,
  VariableDefinitionNode,
} from 'graphql';
import { BerthError } from '../../support/errors.ts';
import type { LocatedError } from './graphql.errors.ts';

/**
 * Whether values fit their types. GraphQL's own messages quote the value; these never do,
 * since it may be a password in the wrong place.
 */

const TYPE_LABELS: Readonly<Record<string, string>> = {
  String: 'text (String)',
  ID: 'text (ID)',
  Int: 'a whole number of at most 32 bits (Int)',
  Float: 'a number (Float)',
  Boolean: 'true or false (Boolean)',
};

/** Takes the place of the standard rule ValuesOfCorrectType. */
export function valuesOfCorrectType(context: ValidationContext): ASTVisitor {
  const wrong = (location: string, type: GraphQLInputType, node: ASTNode): void =>
    context.reportError(new GraphQLError(`${location} must be ${described(type)}`, { nodes: [node] }));

  const checkLeaf = (node: ValueNode, location: string): void => {
    const type = context.getInputType();
    if (!type) return;
    const wanted = getNullableType(type);
    // A single value stands for a list of one.
    const leaf = isListType(wanted) ? innermost(wanted) : wanted;
    if (!isLeafType(leaf)) return wrong(location, type, node);
    try {
      if (leaf.parseLiteral(node, undefined) === undefined) wrong(location, type, node);
    } catch {
      wrong(location, type, node);
    }
  };

  const leaf = (
    node: ValueNode,
    _key: unknown,
    parent: unknown,
    _path: unknown,
    ancestors: readonly unknown[],
  ): void => checkLeaf(node, nearestFieldName([...ancestors, parent]));

  return {
    NullValue: (node, _key, parent, _path, ancestors) => {
      const type = context.getInputType();
      if (isNonNullType(type)) wrong(nearestFieldName([...ancestors, parent]), type, node);
    },
    ListValue: (node, _key, parent, _path, ancestors) => {
      const type = context.getParentInputType();
      if (!type || isListType(getNullableType(type))) return undefined;
      checkLeaf(node, nearestFieldName([...ancestors, parent]));
      return false;
    },
    ObjectValue: (node, _key, parent, _path, ancestors) => {
      const type = context.getInputType();
      if (!type) return undefined;
      if (isInputObjectType(innermost(type))) return undefined;
      checkLeaf(node, nearestFieldName([...ancestors, parent]));
      return false;
    },
    IntValue: leaf,
    FloatValue: leaf,
    StringValue: leaf,
    BooleanValue: leaf,
    EnumValue: leaf,
  };
}

/** What is wrong with the variables of an operation. */
export function variableErrors(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  variables: Record<string, unknown>,
): LocatedError[] {
  const findings: LocatedError[] = [];
  for (const { variable, type: node, defaultValue } of definitions) {
    const name = variable.name.value;
    const type = typeFromAST(schema, node as NamedTypeNode) as GraphQLInputType | undefined;
    if (type === undefined) continue;
    if (!Object.hasOwn(variables, name)) {
      if (isNonNullType(type) && defaultValue === undefined)
        findings.push({
          error: new BerthError('schema', `variables.${name} is required: ${described(type)}`),
        });
      continue;
    }
    coerceInputValue(variables[name], type, (path) => {
      const location = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
      findings.push({
        error: new BerthError(
          'schema',
          `variables.${name}${location} must be ${described(typeAt(type, path))}`,
        ),
      });
    });
  }
  return findings;
}

function described(type: GraphQLInputType): string {
  if (isNonNullType(type)) return described(type.ofType);
  if (isListType(type)) return `a list, each entry ${described(type.ofType)}`;
  if (isEnumType(type))
    return `one of ${type
      .getValues()
      .map(({ name }) => name)
      .join(', ')} (${type.name})`;
  return (
    TYPE_LABELS[type.name] ?? (isInputObjectType(type) ? `an object (${type.name})` : `of type ${type.name}`)
  );
}

function innermost(type: GraphQLInputType): GraphQLInputType {
  return isNonNullType(type) || isListType(type) ? innermost(type.ofType) : type;
}

function typeAt(type: GraphQLInputType, path: readonly (string | number)[]): GraphQLInputType {
  const [step, ...rest] = path;
  if (step === undefined) return type;
  if (isNonNullType(type)) return typeAt(type.ofType, path);
  if (isListType(type)) return typeAt(type.ofType, typeof step === 'number' ? rest : path);
  const field = isInputObjectType(type) ? type.getFields()[step] : undefined;
  return field === undefined ? type : typeAt(field.type, rest);
}

/** What the value belongs to: the nearest argument or input field. */
function nearestFieldName(ancestors: readonly unknown[]): string {
  const holder = ancestors.findLast((node): node is ASTNode & { name: { value: string } } => isNamed(node));
  return holder?.name.value ?? 'the value';
}

function isNamed(node: unknown): boolean {
  const kind = typeof node === 'object' && node !== null && 'kind' in node ? node.kind : undefined;
  return kind === Kind.ARGUMENT || kind === Kind.OBJECT_FIELD;
}
