import { buildSchema, defaultFieldResolver, getNullableType, isListType, isObjectType } from 'graphql';
import type { GraphQLField, GraphQLFieldResolver, GraphQLSchema } from 'graphql';
import type { ResourceServices } from '../../resources/resources.ts';
import { accountModule } from './account.resolvers.ts';
import { apiKeyModule } from './api-keys.resolvers.ts';
import type { RequestContext } from './graphql-request-context.ts';
import { billingModule } from './billing.resolvers.ts';
import { clusterModule } from './clusters.resolvers.ts';
import { baseTypesModule } from './graphql-base-types.ts';
import { cpuModule } from './cpus.resolvers.ts';
import { dataCenterModule } from './data-centers.resolvers.ts';
import { endpointModule } from './endpoints.resolvers.ts';
import { flashModule } from './flash.resolvers.ts';
import { gpuModule } from './gpus.resolvers.ts';
import { hubModule } from './hub.resolvers.ts';
import { loginRequestModule } from './login-requests.resolvers.ts';
import { modelModule } from './models.resolvers.ts';
import { networkVolumeModule } from './network-volumes.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { podMachineModule } from './pod-machine.resolvers.ts';
import { podModule } from './pods.resolvers.ts';
import { registryModule } from './registries.resolvers.ts';
import { secretModule } from './secrets.resolvers.ts';
import { templateModule } from './templates.resolvers.ts';
import { providedArguments } from './tolerant-input.ts';
import { workerStateModule } from './worker-state.resolvers.ts';

/** All that the interface offers. A new domain is one more line. */
export function graphqlModules(resources: ResourceServices): GraphqlModule[] {
  return [
    baseTypesModule,
    accountModule(resources),
    billingModule(resources),
    templateModule(resources),
    endpointModule(resources),
    podModule(resources),
    clusterModule(resources),
    registryModule(resources),
    networkVolumeModule(resources),
    secretModule(resources),
    apiKeyModule(resources),
    gpuModule(resources),
    cpuModule(resources),
    dataCenterModule(resources),
    hubModule(resources),
    flashModule(resources),
    modelModule(resources),
    loginRequestModule(resources),
    podMachineModule(resources),
    workerStateModule(resources),
  ];
}

export interface ExecutableSchema {
  schema: GraphQLSchema;
  /** The root fields that answer without a key. */
  publicFields: Record<'query' | 'mutation', ReadonlySet<string>>;
}

type Resolve = GraphQLFieldResolver<unknown, RequestContext, Record<string, unknown>>;

const INTROSPECTION = ['__schema', '__type', '__typename'];

/**
 * Puts the pieces together. A resolver without a field, or a root field without a resolver, is a mistake that
 * shows here.
 */
export function buildExecutableSchema(pieces: readonly GraphqlModule[]): ExecutableSchema {
  const schema = buildSchema(pieces.map(({ sdl }) => sdl).join('\n'));
  for (const { publicResolvers = {}, authenticatedResolvers = {}, fieldResolvers = {} } of pieces) {
    for (const [type, field, resolver] of resolverEntries(publicResolvers))
      attachResolver(schema, type, field, (_source, args, context) => resolver(args as never, context));
    for (const [type, field, resolver] of resolverEntries(authenticatedResolvers))
      attachResolver(schema, type, field, (_source, args, context) =>
        resolver(args as never, context.caller),
      );
    for (const [type, field, resolver] of resolverEntries(fieldResolvers))
      attachResolver(schema, type, field, (source, args, context) =>
        resolver(source as never, args as never, context),
      );
  }
  checkRootResolvers(schema);
  for (const field of objectFields(schema))
    if (isListType(getNullableType(field.type))) countListEntries(field);
  const openOf = (root: 'Query' | 'Mutation'): Set<string> =>
    new Set([
      ...INTROSPECTION,
      ...pieces.flatMap(({ publicResolvers }) => Object.keys(publicResolvers?.[root] ?? {})),
    ]);
  return { schema, publicFields: { query: openOf('Query'), mutation: openOf('Mutation') } };
}

function resolverEntries<R>(
  byType: Record<string, Record<string, R>>,
): [type: string, field: string, resolver: R][] {
  return Object.entries(byType).flatMap(([type, resolvers]) =>
    Object.entries(resolvers).map(([field, resolver]): [string, string, R] => [type, field, resolver]),
  );
}

function attachResolver(schema: GraphQLSchema, typeName: string, fieldName: string, resolve: Resolve): void {
  const type = schema.getType(typeName);
  const field = isObjectType(type) ? type.getFields()[fieldName] : undefined;
  if (field === undefined)
    throw new Error(`there is code for ${typeName}.${fieldName}, which the schema does not have`);
  field.resolve = (source, args: Record<string, unknown>, context: RequestContext, info) =>
    resolve(source, providedArguments(field.args, args), context, info);
}

function checkRootResolvers(schema: GraphQLSchema): void {
  for (const root of [schema.getQueryType(), schema.getMutationType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      if (field.resolve === undefined) throw new Error(`${root?.name}.${field.name} has no code behind it`);
    }
  }
}

function objectFields(schema: GraphQLSchema): GraphQLField<unknown, RequestContext>[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter(({ name }) => !name.startsWith('__'))
    .flatMap((type) => Object.values(type.getFields()));
}

function countListEntries(field: GraphQLField<unknown, RequestContext>): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = async (source, args: Record<string, unknown>, context, info) => {
    const list: unknown = await resolve(source, args, context, info);
    if (Array.isArray(list)) context.countListEntries(list.length);
    return list;
  };
}
