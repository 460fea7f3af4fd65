import { buildSchema, defaultFieldResolver, getNullableType, isListType, isObjectType } from 'graphql';
import type { GraphQLField, GraphQLFieldResolver, GraphQLSchema } from 'graphql';
import type { Resources } from '../../resources/resources.ts';
import { accountPart } from './account.ts';
import { apiKeyPart } from './api-keys.ts';
import type { Asking } from './asking.ts';
import { billingPart } from './billing.ts';
import { clusterPart } from './clusters.ts';
import { common } from './common.ts';
import { cpuPart } from './cpus.ts';
import { dataCenterPart } from './data-centers.ts';
import { endpointPart } from './endpoints.ts';
import { flashPart } from './flash.ts';
import { gpuPart } from './gpus.ts';
import { hubPart } from './hub.ts';
import { loginRequestPart } from './login-requests.ts';
import { modelPart } from './models.ts';
import { networkVolumePart } from './network-volumes.ts';
import type { Part } from './part.ts';
import { podMachinePart } from './pod-machine.ts';
import { podPart } from './pods.ts';
import { registryPart } from './registries.ts';
import { secretPart } from './secrets.ts';
import { templatePart } from './templates.ts';
import { given } from './tolerance.ts';
import { workerStatePart } from './worker-state.ts';

/** All that the interface offers. A new domain is one more line. */
export function parts(resources: Resources): Part[] {
  return [
    common,
    accountPart(resources),
    billingPart(resources),
    templatePart(resources),
    endpointPart(resources),
    podPart(resources),
    clusterPart(resources),
    registryPart(resources),
    networkVolumePart(resources),
    secretPart(resources),
    apiKeyPart(resources),
    gpuPart(resources),
    cpuPart(resources),
    dataCenterPart(resources),
    hubPart(resources),
    flashPart(resources),
    modelPart(resources),
    loginRequestPart(resources),
    podMachinePart(resources),
    workerStatePart(resources),
  ];
}

export interface Assembled {
  schema: GraphQLSchema;
  /** The root fields that answer without a key. */
  open: Record<'query' | 'mutation', ReadonlySet<string>>;
}

type Resolve = GraphQLFieldResolver<unknown, Asking, Record<string, unknown>>;

const INTROSPECTION = ['__schema', '__type', '__typename'];

/** Puts the pieces together. A resolver without a field, or a root field without a resolver, is a mistake that shows here. */
export function assemble(pieces: readonly Part[]): Assembled {
  const schema = buildSchema(pieces.map(({ sdl }) => sdl).join('\n'));
  for (const { open = {}, keyed = {}, fields = {} } of pieces) {
    for (const [type, field, resolver] of entries(open))
      attach(schema, type, field, (_source, args, asking) => resolver(args as never, asking));
    for (const [type, field, resolver] of entries(keyed))
      attach(schema, type, field, (_source, args, asking) => resolver(args as never, asking.caller));
    for (const [type, field, resolver] of entries(fields))
      attach(schema, type, field, (source, args, asking) => resolver(source as never, args as never, asking));
  }
  checkRoots(schema);
  for (const field of objectFields(schema)) if (isListType(getNullableType(field.type))) countEntries(field);
  const openOf = (root: 'Query' | 'Mutation'): Set<string> =>
    new Set([...INTROSPECTION, ...pieces.flatMap(({ open }) => Object.keys(open?.[root] ?? {}))]);
  return { schema, open: { query: openOf('Query'), mutation: openOf('Mutation') } };
}

function entries<R>(byType: Record<string, Record<string, R>>): [type: string, field: string, resolver: R][] {
  return Object.entries(byType).flatMap(([type, resolvers]) =>
    Object.entries(resolvers).map(([field, resolver]): [string, string, R] => [type, field, resolver]),
  );
}

function attach(schema: GraphQLSchema, typeName: string, fieldName: string, resolve: Resolve): void {
  const type = schema.getType(typeName);
  const field = isObjectType(type) ? type.getFields()[fieldName] : undefined;
  if (field === undefined)
    throw new Error(`there is code for ${typeName}.${fieldName}, which the schema does not have`);
  field.resolve = (source, args: Record<string, unknown>, asking: Asking, info) =>
    resolve(source, given(field.args, args), asking, info);
}

function checkRoots(schema: GraphQLSchema): void {
  for (const root of [schema.getQueryType(), schema.getMutationType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      if (field.resolve === undefined) throw new Error(`${root?.name}.${field.name} has no code behind it`);
    }
  }
}

function objectFields(schema: GraphQLSchema): GraphQLField<unknown, Asking>[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter(({ name }) => !name.startsWith('__'))
    .flatMap((type) => Object.values(type.getFields()));
}

function countEntries(field: GraphQLField<unknown, Asking>): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = async (source, args: Record<string, unknown>, asking, info) => {
    const list: unknown = await resolve(source, args, asking, info);
    if (Array.isArray(list)) asking.countEntries(list.length);
    return list;
  };
}
