import type { Caller } from '../../domain/caller.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { RequestContext } from './graphql-request-context.ts';
import { flashAppNotFound } from './graphql-client-errors.ts';
import { serializeEndpoint } from './endpoints.resolvers.ts';
import { checkName, requireFields } from './graphql-input-checks.ts';
import { serializeNetworkVolume } from './network-volumes.resolvers.ts';
import type { GraphqlModule } from './graphql-module.ts';
import type { FlashApp, FlashBuild, FlashEnvironment } from '../../domain/flash-records.ts';

const sdl = `
  "Code that is deployed in one go"
  type FlashApp { id: String name: String flashEnvironments: [FlashEnvironment] flashBuilds: [FlashBuild] }
  type FlashEnvironment {
    id: String
    name: String
    "ACTIVE where a build runs in it, else PENDING"
    state: String
    createdAt: DateTime
    activeBuildId: String
    flashAppId: String
    "Those that were made for it with saveEndpoint"
    endpoints: [Endpoint]
    networkVolumes: [NetworkVolume]
    activeArtifact: FlashArtifact
  }
  type FlashArtifact { objectKey: String downloadUrl: String expiresAt: DateTime }
  type FlashBuild { id: String createdAt: DateTime objectKey: String manifest: JSON }
  "PUT the file there, as it is"
  type FlashArtifactUpload { uploadUrl: String objectKey: String expiresAt: DateTime }
  input CreateFlashAppInput { name: String }
  input CreateFlashEnvironmentInput { flashAppId: String name: String }
  input FlashEnvironmentByNameInput { flashAppId: String name: String }
  input PrepareFlashArtifactUploadInput { flashAppId: String tarballSize: Int }
  input FinalizeFlashArtifactUploadInput { flashAppId: String objectKey: String manifest: JSON }
  input UpdateFlashBuildManifestInput { flashBuildId: String manifest: JSON }
  input DeployBuildToEnvironmentInput { flashEnvironmentId: String flashBuildId: String }

  extend type Query {
    flashApp(flashAppId: String): FlashApp
    flashAppByName(flashAppName: String): FlashApp
    flashEnvironment(flashEnvironmentId: String): FlashEnvironment
    flashEnvironmentByName(input: FlashEnvironmentByNameInput): FlashEnvironment
    flashBuild(flashBuildId: String): FlashBuild
  }
  extend type User { flashApps: [FlashApp] }
  extend type Mutation {
    createFlashApp(input: CreateFlashAppInput): FlashApp
    "Its endpoints stay"
    deleteFlashApp(flashAppId: String): Void
    createFlashEnvironment(input: CreateFlashEnvironmentInput): FlashEnvironment
    deleteFlashEnvironment(flashEnvironmentId: String): Void
    prepareFlashArtifactUpload(input: PrepareFlashArtifactUploadInput): FlashArtifactUpload
    finalizeFlashArtifactUpload(input: FinalizeFlashArtifactUploadInput): FlashBuild
    updateFlashBuildManifest(input: UpdateFlashBuildManifestInput): FlashBuild
    deployBuildToEnvironment(input: DeployBuildToEnvironmentInput): FlashEnvironment
  }
`;

export function flashModule({ flash, endpoints, volumes, catalog }: ResourceServices): GraphqlModule {
  const endpointsOf = async ({ record }: FlashEnvironmentObject, context: RequestContext) =>
    (await context.memoize('endpoints', () => endpoints.list(context.caller))).filter(({ id }) =>
      record.endpointIds.includes(id),
    );
  return {
    sdl,
    authenticatedResolvers: {
      Query: {
        flashApp: async (args: { flashAppId?: string }, caller: Caller) =>
          serializeApp(await flash.app(caller, requireFields(args, 'flashAppId').flashAppId)),
        flashAppByName: async (args: { flashAppName?: string }, caller: Caller) => {
          const { flashAppName } = requireFields(args, 'flashAppName');
          const found = await flash.appByName(caller, flashAppName);
          if (found === undefined) throw flashAppNotFound(flashAppName);
          return serializeApp(found);
        },
        flashEnvironment: async (args: { flashEnvironmentId?: string }, caller: Caller) =>
          serializeEnvironment(
            await flash.environment(caller, requireFields(args, 'flashEnvironmentId').flashEnvironmentId),
          ),
        flashEnvironmentByName: async (
          { input = {} }: { input?: { flashAppId?: string; name?: string } },
          caller: Caller,
        ) => {
          const { flashAppId, name } = requireFields(input, 'flashAppId', 'name');
          return serializeEnvironment(await flash.environmentByName(caller, flashAppId, name));
        },
        flashBuild: async (args: { flashBuildId?: string }, caller: Caller) =>
          serializeBuild(await flash.build(caller, requireFields(args, 'flashBuildId').flashBuildId)),
      },
      User: {
        flashApps: async (_args: unknown, caller: Caller) => (await flash.apps(caller)).map(serializeApp),
      },
      Mutation: {
        createFlashApp: async ({ input = {} }: { input?: { name?: string } }, caller: Caller) =>
          serializeApp(await flash.createApp(caller, checkName(requireFields(input, 'name').name))),
        deleteFlashApp: async (args: { flashAppId?: string }, caller: Caller) => {
          await flash.removeApp(caller, requireFields(args, 'flashAppId').flashAppId);
          return null;
        },
        createFlashEnvironment: async (
          { input = {} }: { input?: { flashAppId?: string; name?: string } },
          caller: Caller,
        ) => {
          const { flashAppId, name } = requireFields(input, 'flashAppId', 'name');
          return serializeEnvironment(await flash.createEnvironment(caller, flashAppId, checkName(name)));
        },
        deleteFlashEnvironment: async (args: { flashEnvironmentId?: string }, caller: Caller) => {
          await flash.removeEnvironment(caller, requireFields(args, 'flashEnvironmentId').flashEnvironmentId);
          return null;
        },
        prepareFlashArtifactUpload: async (
          { input = {} }: { input?: { flashAppId?: string; tarballSize?: number } },
          caller: Caller,
        ) => {
          const { objectKey, url, expiresAt } = await flash.prepareUpload(
            caller,
            requireFields(input, 'flashAppId').flashAppId,
            input.tarballSize,
          );
          return { uploadUrl: url, objectKey, expiresAt: isoTime(expiresAt) };
        },
        finalizeFlashArtifactUpload: async (
          { input = {} }: { input?: { flashAppId?: string; objectKey?: string; manifest?: unknown } },
          caller: Caller,
        ) => {
          const { flashAppId, objectKey, manifest } = requireFields(input, 'flashAppId', 'objectKey');
          return serializeBuild(await flash.finalizeUpload(caller, flashAppId, objectKey, manifest));
        },
        updateFlashBuildManifest: async (
          { input = {} }: { input?: { flashBuildId?: string; manifest?: unknown } },
          caller: Caller,
        ) => {
          const { flashBuildId, manifest } = requireFields(input, 'flashBuildId');
          return serializeBuild(await flash.changeManifest(caller, flashBuildId, manifest));
        },
        deployBuildToEnvironment: async (
          { input = {} }: { input?: { flashEnvironmentId?: string; flashBuildId?: string } },
          caller: Caller,
        ) => {
          const { flashEnvironmentId, flashBuildId } = requireFields(
            input,
            'flashEnvironmentId',
            'flashBuildId',
          );
          return serializeEnvironment(await flash.deploy(caller, flashEnvironmentId, flashBuildId));
        },
      },
    },
    fieldResolvers: {
      FlashApp: {
        flashEnvironments: async ({ id }: FlashApp, _args: unknown, context) =>
          (await flash.environments(context.caller, id)).map(serializeEnvironment),
        flashBuilds: async ({ id }: FlashApp, _args: unknown, context) =>
          (await flash.builds(context.caller, id)).map(serializeBuild),
      },
      FlashEnvironment: {
        endpoints: async (shown: FlashEnvironmentObject, _args: unknown, context) =>
          (await endpointsOf(shown, context)).map(serializeEndpoint),
        networkVolumes: async (shown: FlashEnvironmentObject, _args: unknown, context) => {
          const wanted = new Set(
            (await endpointsOf(shown, context)).flatMap(({ networkVolumeIds }) => networkVolumeIds),
          );
          return (await context.memoize('network volumes', () => volumes.list(context.caller)))
            .filter(({ id }) => wanted.has(id))
            .map((volume) => serializeNetworkVolume(volume, catalog));
        },
        activeArtifact: async ({ activeBuildId }: FlashEnvironmentObject, _args: unknown, context) => {
          if (activeBuildId === null) return null;
          const build = await flash.build(context.caller, activeBuildId);
          const { url, expiresAt } = flash.download(build);
          return { objectKey: build.objectKey, downloadUrl: url, expiresAt: isoTime(expiresAt) };
        },
      },
      Endpoint: {
        flashEnvironmentId: async ({ id }: { id: string }, _args: unknown, context) =>
          (await environmentOf(id, context))?.id ?? null,
        activeBuildid: async ({ id }: { id: string }, _args: unknown, context) =>
          (await environmentOf(id, context))?.activeBuildId ?? null,
      },
    },
  };

  async function environmentOf(
    endpointId: string,
    context: RequestContext,
  ): Promise<FlashEnvironment | undefined> {
    return (await context.memoize('flash environments', () => flash.environments(context.caller))).find(
      ({ endpointIds }) => endpointIds.includes(endpointId),
    );
  }
}

type FlashEnvironmentObject = ReturnType<typeof serializeEnvironment>;

function serializeApp({ id, name }: FlashApp) {
  return { id, name };
}

function serializeEnvironment(record: FlashEnvironment) {
  const { id, name, createdAt, activeBuildId, appId } = record;
  return {
    record,
    id,
    name,
    state: activeBuildId === null ? 'PENDING' : 'ACTIVE',
    createdAt: isoTime(createdAt),
    activeBuildId,
    flashAppId: appId,
  };
}

function serializeBuild({ id, createdAt, objectKey, manifest }: FlashBuild) {
  return { id, createdAt: isoTime(createdAt), objectKey, manifest };
}
