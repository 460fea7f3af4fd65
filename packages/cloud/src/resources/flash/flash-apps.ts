import { UniqueViolation } from '../../store/database.ts';
import type { Endpoint } from '../../domain/records.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { ArtifactLink, FlashArtifacts } from './flash-artifacts.ts';
import { MAX_ARTIFACT_BYTES } from './flash-artifacts.ts';
import type { FlashApp, FlashBuild, FlashEnvironment } from '../../domain/flash-records.ts';

/** Names of uploaded builds. Keys that do not match are never looked up on disk. */
const OBJECT_NAME = /^[A-Za-z0-9_-]+\.tar\.gz$/;
const [APP, ENVIRONMENT, BUILD] = ['app', 'environment', 'build'];

export interface FlashNames {
  app: string;
  environment: string;
  endpoint: string;
}

/**
 * Apps of the Flash client. The client uploads a build and creates endpoints from it; these records say which
 * environment of an app runs which build.
 */
export class FlashApps {
  readonly #context: ResourceContext;
  readonly #artifacts: FlashArtifacts;

  constructor(context: ResourceContext, artifacts: FlashArtifacts) {
    this.#context = context;
    this.#artifacts = artifacts;
  }

  apps({ accountId }: Caller): Promise<FlashApp[]> {
    return this.#context.store.flash.apps.list(accountId);
  }

  async app({ accountId }: Caller, id: string): Promise<FlashApp> {
    const found = await this.#context.store.flash.apps.find(accountId, id);
    if (found === undefined) throw notFound(APP, id);
    return found;
  }

  async appByName(caller: Caller, name: string): Promise<FlashApp | undefined> {
    return (await this.apps(caller)).find((app) => app.name === name);
  }

  async createApp(caller: Caller, name: string): Promise<FlashApp> {
    const app = { ...this.#newRecord(caller), name };
    await rejectDuplicateName(APP, name, () =>
      this.#context.store.flash.apps.insert(
        app,
        auditEntry(this.#context, caller, 'create', 'flash app', app.id),
      ),
    );
    return app;
  }

  /** Does not delete endpoints: the client deletes them before. */
  async removeApp(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.flash.apps.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', 'flash app', id),
    );
    if (!removed) throw notFound(APP, id);
    await this.#artifacts.removeAll(folderOf(id));
  }

  async environments(caller: Caller, appId?: string): Promise<FlashEnvironment[]> {
    return (await this.#context.store.flash.environments.list(caller.accountId)).filter(
      (environment) => appId === undefined || environment.appId === appId,
    );
  }

  async environment({ accountId }: Caller, id: string): Promise<FlashEnvironment> {
    const found = await this.#context.store.flash.environments.find(accountId, id);
    if (found === undefined) throw notFound(ENVIRONMENT, id);
    return found;
  }

  async environmentByName(caller: Caller, appId: string, name: string): Promise<FlashEnvironment> {
    const found = (await this.environments(caller, appId)).find((environment) => environment.name === name);
    if (found === undefined) throw notFound(ENVIRONMENT, name);
    return found;
  }

  async createEnvironment(caller: Caller, appId: string, name: string): Promise<FlashEnvironment> {
    await this.app(caller, appId);
    const environment = { ...this.#newRecord(caller), appId, name, activeBuildId: null, endpointIds: [] };
    await rejectDuplicateName(ENVIRONMENT, name, () =>
      this.#context.store.flash.environments.insert(
        environment,
        auditEntry(this.#context, caller, 'create', 'flash environment', environment.id),
      ),
    );
    return environment;
  }

  async removeEnvironment(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.flash.environments.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', 'flash environment', id),
    );
    if (!removed) throw notFound(ENVIRONMENT, id);
  }

  /** Records that an endpoint belongs to an environment. */
  async addEndpoint(caller: Caller, environmentId: string, endpointId: string): Promise<void> {
    await this.#change(caller, environmentId, (environment) => ({
      ...environment,
      endpointIds: [...new Set([...environment.endpointIds, endpointId])],
    }));
  }

  /** Finds an endpoint by the names of the app, the environment and the endpoint. */
  async findEndpointId(accountId: string, names: FlashNames): Promise<string> {
    const environment = await this.#environmentNamed(accountId, names);
    const endpoints = environment === undefined ? [] : await this.#context.store.endpoints.list(accountId);
    const found = endpoints.find(
      ({ id, name }) => environment?.endpointIds.includes(id) === true && name === names.endpoint,
    );
    if (found === undefined)
      throw notFound('endpoint', `${names.app}/${names.environment}/${names.endpoint}`);
    return found.id;
  }

  /**
   * The file of the active build of an endpoint's environment; undefined if the endpoint belongs to none. The
   * environment is read from the endpoint's variables, so this also works for the first worker of a new
   * endpoint.
   */
  async findArtifactFile({
    accountId,
    env: { FLASH_APP: app, FLASH_ENV: environment },
  }: Pick<Endpoint, 'accountId' | 'env'>): Promise<string | undefined> {
    if (app === undefined || environment === undefined) return undefined;
    const buildId =
      (await this.#environmentNamed(accountId, { app, environment }))?.activeBuildId ?? undefined;
    const build =
      buildId === undefined ? undefined : await this.#context.store.flash.builds.find(accountId, buildId);
    return build === undefined ? undefined : this.#artifacts.file(build.objectKey);
  }

  async deploy(caller: Caller, environmentId: string, buildId: string): Promise<FlashEnvironment> {
    const { appId } = await this.build(caller, buildId);
    return this.#change(caller, environmentId, (environment) => {
      if (environment.appId !== appId)
        throw ruleError(
          `build ${buildId} and environment ${environmentId} belong to different apps; deploy a build of the same app`,
        );
      return { ...environment, activeBuildId: buildId };
    });
  }

  async builds(caller: Caller, appId: string): Promise<FlashBuild[]> {
    return (await this.#context.store.flash.builds.list(caller.accountId)).filter(
      (build) => build.appId === appId,
    );
  }

  async build({ accountId }: Caller, id: string): Promise<FlashBuild> {
    const found = await this.#context.store.flash.builds.find(accountId, id);
    if (found === undefined) throw notFound(BUILD, id);
    return found;
  }

  /** A signed link for uploading the file of the next build. */
  async prepareUpload(
    caller: Caller,
    appId: string,
    bytes: number | undefined,
  ): Promise<ArtifactLink & { objectKey: string }> {
    await this.app(caller, appId);
    if (bytes !== undefined && bytes > MAX_ARTIFACT_BYTES)
      throw ruleError(`the build has ${bytes} bytes; the maximum is ${MAX_ARTIFACT_BYTES}`);
    const objectKey = `${folderOf(appId)}/${this.#context.ids.resource()}.tar.gz`;
    return { objectKey, ...this.#artifacts.link('PUT', objectKey) };
  }

  /** Creates a build from an uploaded file. */
  async finalizeUpload(
    caller: Caller,
    appId: string,
    objectKey: string,
    manifest: unknown,
  ): Promise<FlashBuild> {
    await this.app(caller, appId);
    const folder = `${folderOf(appId)}/`;
    if (
      !objectKey.startsWith(folder) ||
      !OBJECT_NAME.test(objectKey.slice(folder.length)) ||
      (await this.#artifacts.size(objectKey)) === undefined
    ) {
      throw ruleError(
        'nothing was uploaded under this objectKey; request a link with prepareFlashArtifactUpload and ' +
          'upload the file first',
      );
    }
    const build = { ...this.#newRecord(caller), appId, objectKey, manifest };
    await rejectDuplicateName(BUILD, objectKey, () =>
      this.#context.store.flash.builds.insert(
        build,
        auditEntry(this.#context, caller, 'create', 'flash build', build.id),
      ),
    );
    return build;
  }

  async changeManifest(caller: Caller, id: string, manifest: unknown): Promise<FlashBuild> {
    const changed = await this.#context.store.flash.builds.change(caller.accountId, id, (build) => ({
      record: { ...build, manifest },
      audit: auditEntry(this.#context, caller, 'update', 'flash build', id, [{ field: 'manifest' }]),
    }));
    if (changed === undefined) throw notFound(BUILD, id);
    return changed;
  }

  download({ objectKey }: FlashBuild): ArtifactLink {
    return this.#artifacts.link('GET', objectKey);
  }

  async #environmentNamed(
    accountId: string,
    names: Pick<FlashNames, 'app' | 'environment'>,
  ): Promise<FlashEnvironment | undefined> {
    const { apps, environments } = this.#context.store.flash;
    const app = (await apps.list(accountId)).find(({ name }) => name === names.app);
    return app === undefined
      ? undefined
      : (await environments.list(accountId)).find(
          ({ appId, name }) => appId === app.id && name === names.environment,
        );
  }

  #newRecord({ accountId }: Caller) {
    return { id: this.#context.ids.resource(), accountId, createdAt: this.#context.clock.now() };
  }

  async #change(
    caller: Caller,
    id: string,
    next: (current: FlashEnvironment) => FlashEnvironment,
  ): Promise<FlashEnvironment> {
    const changed = await this.#context.store.flash.environments.change(caller.accountId, id, (current) => ({
      record: next(current),
      audit: auditEntry(this.#context, caller, 'update', 'flash environment', id),
    }));
    if (changed === undefined) throw notFound(ENVIRONMENT, id);
    return changed;
  }
}

function folderOf(appId: string): string {
  return `flash/${appId}`;
}

async function rejectDuplicateName(kind: string, name: string, insert: () => Promise<void>): Promise<void> {
  try {
    await insert();
  } catch (error) {
    if (error instanceof UniqueViolation)
      throw new BerthError('taken', `an ${kind} named ${JSON.stringify(name.slice(0, 64))} exists already`);
    throw error;
  }
}
