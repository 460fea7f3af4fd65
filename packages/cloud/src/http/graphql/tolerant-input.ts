import {
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  Kind,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type {
  DocumentNode,
  GraphQLArgument,
  GraphQLInputField,
  GraphQLInputType,
  GraphQLNamedType,
  GraphQLSchema,
  GraphQLType,
  NamedTypeNode,
  TypeNode,
  ValueNode,
  VariableDefinitionNode,
} from 'graphql';

/**
 * Clients are looser than GraphQL. Before a document and its variables are checked:
 * - fields of input objects that are not known are dropped;
 * - an empty text in an input object means that nothing was said, unless the field is marked
 *   `@mayBeEmpty`, and is dropped;
 * - the value of an enum may stand there as a text, and a text as a bare name;
 * - a variable may be declared as String, ID or an enum, whichever of these the place takes.
 *
 * What is left is plain GraphQL. After it has been checked, `given` removes what still says
 * nothing: nulls, and empty texts that came through a variable of their own.
 */

/** Fields that were dropped because they are not known, as `Type.field`. */
export type DroppedFields = Set<string>;

export function tolerantDocument(
  schema: GraphQLSchema,
  document: DocumentNode,
  dropped: DroppedFields,
): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    withFittingVariables(schema, document),
    visitWithTypeInfo(types, {
      Argument: ({ value }) => (isEmptyText(value) ? null : undefined),
      ObjectValue: (node) => {
        const type = getNamedType(types.getInputType());
        if (!isInputObjectType(type)) return undefined;
        const known = type.getFields();
        const fields = node.fields.filter(({ name, value }) =>
          isProvided(known[name.value], isEmptyText(value), `${type.name}.${name.value}`, dropped),
        );
        return fields.length === node.fields.length ? undefined : { ...node, fields };
      },
      StringValue: (node) =>
        isEnumType(getNamedType(types.getInputType()))
          ? { kind: Kind.ENUM, value: node.value, ...(node.loc && { loc: node.loc }) }
          : undefined,
      EnumValue: (node) =>
        isText(getNamedType(types.getInputType()))
          ? { kind: Kind.STRING, value: node.value, ...(node.loc && { loc: node.loc }) }
          : undefined,
    }),
  );
}

/** The variables that the document declares, by their declared types; others are no concern of it. */
export function tolerantVariables(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  variables: Record<string, unknown>,
  dropped: DroppedFields,
): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (const { variable, type } of definitions) {
    const name = variable.name.value;
    if (!Object.hasOwn(variables, name)) continue;
    const value = tolerantValue(typeFromAST(schema, type as NamedTypeNode), variables[name], dropped);
    if (value !== undefined) record[name] = value;
  }
  return record;
}

function tolerantValue(type: GraphQLType | undefined, value: unknown, dropped: DroppedFields): unknown {
  if (isNonNullType(type)) return tolerantValue(type.ofType, value, dropped);
  if (isListType(type))
    return Array.isArray(value)
      ? value.map((item) => tolerantValue(type.ofType, item, dropped))
      : tolerantValue(type.ofType, value, dropped);
  if (isEnumType(type)) return value === '' ? undefined : value;
  if (!isInputObjectType(type) || !isObject(value)) return value;
  const known = type.getFields();
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, item]) =>
        isProvided(
          Object.hasOwn(known, name) ? known[name] : undefined,
          item === '',
          `${type.name}.${name}`,
          dropped,
        ),
      )
      .map(([name, item]) => [name, tolerantValue(known[name]?.type, item, dropped)]),
  );
}

/** The arguments of a field with only what was really said in them. */
export function providedArguments(
  definitions: readonly GraphQLArgument[],
  values: Record<string, unknown>,
): Record<string, unknown> {
  return providedFields(definitions, values);
}

function providedFields(
  definitions: readonly (GraphQLArgument | GraphQLInputField)[],
  values: Record<string, unknown>,
): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const definition of definitions) {
    const value = values[definition.name];
    if (value === undefined || value === null || (value === '' && !mayBeEmpty(definition))) continue;
    given[definition.name] = providedValue(definition.type, value);
  }
  return given;
}

function providedValue(type: GraphQLInputType, value: unknown): unknown {
  if (isNonNullType(type)) return providedValue(type.ofType, value);
  if (isListType(type) && Array.isArray(value))
    return value
      .filter((item) => item !== null && item !== undefined)
      .map((item) => providedValue(type.ofType, item));
  return isInputObjectType(type) && isObject(value)
    ? providedFields(Object.values(type.getFields()), value)
    : value;
}

/** Rewrites a variable's declared type to the one that its places take, where both are written alike. */
function withFittingVariables(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const expectedTypes = new Map<string, Set<GraphQLNamedType>>();
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      Variable: ({ name }, _key, parent) => {
        const type = getNamedType(types.getInputType());
        if (
          type === undefined ||
          (parent !== undefined && 'kind' in parent && parent.kind === Kind.VARIABLE_DEFINITION)
        )
          return;
        expectedTypes.set(name.value, (expectedTypes.get(name.value) ?? new Set()).add(type));
      },
    }),
  );
  return visit(document, {
    VariableDefinition: (node) => {
      const [wanted, ...others] = expectedTypes.get(node.variable.name.value) ?? [];
      const declared = schema.getType(innermost(node.type).name.value);
      if (
        wanted === undefined ||
        others.length > 0 ||
        wanted === declared ||
        !isWrittenAsText(wanted) ||
        !isWrittenAsText(declared)
      )
        return undefined;
      return { ...node, type: renamed(node.type, wanted.name) };
    },
  });
}

function isProvided(
  field: GraphQLInputField | undefined,
  empty: boolean,
  name: string,
  dropped: DroppedFields,
): boolean {
  if (field === undefined) dropped.add(name);
  return field !== undefined && !(empty && !mayBeEmpty(field));
}

function mayBeEmpty({ astNode }: GraphQLInputField | GraphQLArgument): boolean {
  return astNode?.directives?.some(({ name }) => name.value === 'mayBeEmpty') ?? false;
}

function isEmptyText(value: ValueNode): boolean {
  return value.kind === Kind.STRING && value.value === '';
}

function isText(type: GraphQLNamedType | undefined): boolean {
  return isScalarType(type) && (type.name === 'String' || type.name === 'ID');
}

function isWrittenAsText(type: GraphQLNamedType | undefined): boolean {
  return isText(type) || isEnumType(type);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function innermost(type: TypeNode): NamedTypeNode {
  return type.kind === Kind.NAMED_TYPE ? type : innermost(type.type);
}

function renamed<T extends TypeNode>(type: T, name: string): T {
  if (type.kind === Kind.NAMED_TYPE) return { ...type, name: { ...type.name, value: name } };
  return { ...type, type: renamed(type.type, name) };
}
