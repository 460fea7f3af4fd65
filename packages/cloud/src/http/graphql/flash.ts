import type { Caller } from '../../resources/caller.ts';
import type { Resources } from '../../resources/resources.ts';
import type { FlashApp, FlashBuild, FlashEnvironment } from '../../store/flash.ts';
import { isoTime } from '../../support/clock.ts';
import type { Asking } from './asking.ts';
import { noFlashApp } from './client-sentences.ts';
import { showEndpoint } from './endpoints.ts';
import { checkName, required } from './inputs.ts';
import { showVolume } from './network-volumes.ts';
import type { Part } from './part.ts';

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

export function flashPart({ flash, endpoints, volumes, catalog }: Resources): Part {
  const endpointsOf = async ({ kept }: ShownEnvironment, asking: Asking) =>
    (await asking.once('endpoints', () => endpoints.list(asking.caller))).filter(({ id }) =>
      kept.endpointIds.includes(id),
    );
  return {
    sdl,
    keyed: {
      Query: {
        flashApp: async (args: { flashAppId?: string }, caller: Caller) =>
          showApp(await flash.app(caller, required(args, 'flashAppId').flashAppId)),
        flashAppByName: async (args: { flashAppName?: string }, caller: Caller) => {
          const { flashAppName } = required(args, 'flashAppName');
          const found = await flash.appByName(caller, flashAppName);
          if (found === undefined) throw noFlashApp(flashAppName);
          return showApp(found);
        },
        flashEnvironment: async (args: { flashEnvironmentId?: string }, caller: Caller) =>
          showEnvironment(
            await flash.environment(caller, required(args, 'flashEnvironmentId').flashEnvironmentId),
          ),
        flashEnvironmentByName: async (
          { input = {} }: { input?: { flashAppId?: string; name?: string } },
          caller: Caller,
        ) => {
          const { flashAppId, name } = required(input, 'flashAppId', 'name');
          return showEnvironment(await flash.environmentByName(caller, flashAppId, name));
        },
        flashBuild: async (args: { flashBuildId?: string }, caller: Caller) =>
          showBuild(await flash.build(caller, required(args, 'flashBuildId').flashBuildId)),
      },
      User: { flashApps: async (_args: unknown, caller: Caller) => (await flash.apps(caller)).map(showApp) },
      Mutation: {
        createFlashApp: async ({ input = {} }: { input?: { name?: string } }, caller: Caller) =>
          showApp(await flash.createApp(caller, checkName(required(input, 'name').name))),
        deleteFlashApp: async (args: { flashAppId?: string }, caller: Caller) => {
          await flash.removeApp(caller, required(args, 'flashAppId').flashAppId);
          return null;
        },
        createFlashEnvironment: async (
          { input = {} }: { input?: { flashAppId?: string; name?: string } },
          caller: Caller,
        ) => {
          const { flashAppId, name } = required(input, 'flashAppId', 'name');
          return showEnvironment(await flash.createEnvironment(caller, flashAppId, checkName(name)));
        },
        deleteFlashEnvironment: async (args: { flashEnvironmentId?: string }, caller: Caller) => {
          await flash.removeEnvironment(caller, required(args, 'flashEnvironmentId').flashEnvironmentId);
          return null;
        },
        prepareFlashArtifactUpload: async (
          { input = {} }: { input?: { flashAppId?: string; tarballSize?: number } },
          caller: Caller,
        ) => {
          const { objectKey, url, expiresAt } = await flash.prepareUpload(
            caller,
            required(input, 'flashAppId').flashAppId,
            input.tarballSize,
          );
          return { uploadUrl: url, objectKey, expiresAt: isoTime(expiresAt) };
        },
        finalizeFlashArtifactUpload: async (
          { input = {} }: { input?: { flashAppId?: string; objectKey?: string; manifest?: unknown } },
          caller: Caller,
        ) => {
          const { flashAppId, objectKey, manifest } = required(input, 'flashAppId', 'objectKey');
          return showBuild(await flash.finalizeUpload(caller, flashAppId, objectKey, manifest));
        },
        updateFlashBuildManifest: async (
          { input = {} }: { input?: { flashBuildId?: string; manifest?: unknown } },
          caller: Caller,
        ) => {
          const { flashBuildId, manifest } = required(input, 'flashBuildId');
          return showBuild(await flash.changeManifest(caller, flashBuildId, manifest));
        },
        deployBuildToEnvironment: async (
          { input = {} }: { input?: { flashEnvironmentId?: string; flashBuildId?: string } },
          caller: Caller,
        ) => {
          const { flashEnvironmentId, flashBuildId } = required(input, 'flashEnvironmentId', 'flashBuildId');
          return showEnvironment(await flash.deploy(caller, flashEnvironmentId, flashBuildId));
        },
      },
    },
    fields: {
      FlashApp: {
        flashEnvironments: async ({ id }: FlashApp, _args: unknown, asking) =>
          (await flash.environments(asking.caller, id)).map(showEnvironment),
        flashBuilds: async ({ id }: FlashApp, _args: unknown, asking) =>
          (await flash.builds(asking.caller, id)).map(showBuild),
      },
      FlashEnvironment: {
        endpoints: async (shown: ShownEnvironment, _args: unknown, asking) =>
          (await endpointsOf(shown, asking)).map(showEndpoint),
        networkVolumes: async (shown: ShownEnvironment, _args: unknown, asking) => {
          const wanted = new Set(
            (await endpointsOf(shown, asking)).flatMap(({ networkVolumeIds }) => networkVolumeIds),
          );
          return (await asking.once('network volumes', () => volumes.list(asking.caller)))
            .filter(({ id }) => wanted.has(id))
            .map((volume) => showVolume(volume, catalog));
        },
        activeArtifact: async ({ activeBuildId }: ShownEnvironment, _args: unknown, asking) => {
          if (activeBuildId === null) return null;
          const build = await flash.build(asking.caller, activeBuildId);
          const { url, expiresAt } = flash.download(build);
          return { objectKey: build.objectKey, downloadUrl: url, expiresAt: isoTime(expiresAt) };
        },
      },
      Endpoint: {
        flashEnvironmentId: async ({ id }: { id: string }, _args: unknown, asking) =>
          (await environmentOf(id, asking))?.id ?? null,
        activeBuildid: async ({ id }: { id: string }, _args: unknown, asking) =>
          (await environmentOf(id, asking))?.activeBuildId ?? null,
      },
    },
  };

  async function environmentOf(endpointId: string, asking: Asking): Promise<FlashEnvironment | undefined> {
    return (await asking.once('flash environments', () => flash.environments(asking.caller))).find(
      ({ endpointIds }) => endpointIds.includes(endpointId),
    );
  }
}

type ShownEnvironment = ReturnType<typeof showEnvironment>;

function showApp({ id, name }: FlashApp) {
  return { id, name };
}

function showEnvironment(kept: FlashEnvironment) {
  const { id, name, createdAt, activeBuildId, appId } = kept;
  return {
    kept,
    id,
    name,
    state: activeBuildId === null ? 'PENDING' : 'ACTIVE',
    createdAt: isoTime(createdAt),
    activeBuildId,
    flashAppId: appId,
  };
}

function showBuild({ id, createdAt, objectKey, manifest }: FlashBuild) {
  return { id, createdAt: isoTime(createdAt), objectKey, manifest };
}
