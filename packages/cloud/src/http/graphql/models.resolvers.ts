import type { Caller } from '../../domain/caller.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import type { ModelVersion, ModelVersionStatus, RepoModel } from '../../domain/repo-model.ts';
import { isoTime } from '../../support/clock.ts';
import { ruleError } from '../../support/errors.ts';
import { requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  enum ModelVersionStatus { PENDING READY POD_REMOVED FAILED }
  input MyModelsInput { provider: String name: String }
  input AddModelToRepoInput {
    owner: String name: String provider: String credentialType: String credentialReference: String
    metadata: JSON modelStatus: String
  }
  input RemoveModelFromRepoInput { owner: String name: String }
  input CreateModelRepoUploadInput {
    owner: String
    name: String
    modelVersionUuid: String
    fileName: String
    fileSizeBytes: String
    contentType: String
    partSizeBytes: String
    metadata: JSON
    credentialType: String
    credentialReference: String
  }
  input CompleteModelRepoUploadInput { sessionId: String }
  type RepoModelUser {
    userId: String credentialType: String credentialReference: String status: String updatedAt: DateTime
  }
  type RepoModelVersion { uuid: ID hash: ID status: String metadata: JSON createdAt: DateTime updatedAt: DateTime }
  "A model that the account has written down"
  type RepoModel {
    id: String
    owner: String
    name: String
    provider: String
    status: String
    createdAt: DateTime
    updatedAt: DateTime
    users: [RepoModelUser]
    versions: [RepoModelVersion]
  }
  type RepoModelResult { success: Boolean message: String model: RepoModel version: RepoModelVersion }
  type RepoUploadPart { partNumber: Int url: String expiresAt: DateTime }
  type RepoUpload {
    sessionId: String
    status: String
    uploadId: String
    bucket: String
    key: String
    keyPrefix: String
    partSizeBytes: String
    partCount: Int
    expiresInSeconds: Int
    parts: [RepoUploadPart]
    completeUrl: String
    abortUrl: String
  }
  type RepoUploadCompletion { success: Boolean message: String sessionId: String status: String }
  type RepoVersionResult { success: Boolean message: String modelVersion: RepoModelVersion }
  type RepoUploadResult {
    success: Boolean message: String model: RepoModel version: RepoModelVersion upload: RepoUpload
  }

  extend type Query {
    myModels(input: MyModelsInput): [RepoModel]
    "Null where there is none"
    myModel(owner: String, name: String): RepoModel
  }
  extend type Mutation {
    "One that is there already gets one more version"
    addModelToRepo(input: AddModelToRepoInput): RepoModelResult
    removeModelFromRepo(input: RemoveModelFromRepoInput): RepoModelResult
    updateModelVersionStatus(uuid: ID, hash: ID, status: ModelVersionStatus): RepoVersionResult
    "Refused: the files of models are kept on network volumes"
    createModelRepoUpload(input: CreateModelRepoUploadInput): RepoUploadResult
    completeModelRepoUpload(input: CompleteModelRepoUploadInput): RepoUploadCompletion
  }
`;

interface AddModelInput {
  owner?: string;
  name?: string;
  provider?: string;
  credentialType?: string;
  credentialReference?: string;
  metadata?: unknown;
  modelStatus?: string;
}

const DEFAULT_PROVIDER = 'HUGGING_FACE';
const DEFAULT_STATUS = 'ACTIVE';

export function modelModule({ models }: ResourceServices): GraphqlModule {
  const noUploads = (): never => {
    throw ruleError(
      'model files are not uploaded here: copy them onto a network volume, and mount it in the ' +
        'endpoints that need them',
    );
  };
  return {
    sdl,
    authenticatedResolvers: {
      Query: {
        myModels: async ({ input = {} }: { input?: { provider?: string; name?: string } }, caller: Caller) =>
          (await models.list(caller))
            .filter(
              ({ provider, name }) =>
                (input.provider === undefined || provider === input.provider) &&
                (input.name === undefined || name === input.name),
            )
            .map(serializeModel),
        myModel: async (args: { owner?: string; name?: string }, caller: Caller) => {
          const { owner, name } = requireFields(args, 'owner', 'name');
          const found = await models.find(caller, owner, name);
          return found === undefined ? null : serializeModel(found);
        },
      },
      Mutation: {
        addModelToRepo: async ({ input = {} }: { input?: AddModelInput }, caller: Caller) => {
          const {
            owner = caller.accountId,
            name,
            provider = DEFAULT_PROVIDER,
            modelStatus = DEFAULT_STATUS,
            credentialType = null,
            credentialReference = null,
            metadata,
          } = requireFields(input, 'name');
          const { model, version } = await models.add(caller, {
            owner,
            name,
            provider,
            status: modelStatus,
            credentialType,
            credentialReference,
            metadata,
          });
          return {
            success: true,
            message: `${owner}/${name} was added`,
            model: serializeModel(model),
            version: serializeModelVersion(version),
          };
        },
        removeModelFromRepo: async ({ input = {} }: { input?: AddModelInput }, caller: Caller) => {
          const { owner, name } = requireFields(input, 'owner', 'name');
          return {
            success: true,
            message: `${owner}/${name} was removed`,
            model: serializeModel(await models.remove(caller, owner, name)),
            version: null,
          };
        },
        updateModelVersionStatus: async (
          args: { uuid?: string; hash?: string; status?: ModelVersionStatus },
          caller: Caller,
        ) => {
          const { status } = requireFields(args, 'status');
          return {
            success: true,
            message: `it is ${status} now`,
            modelVersion: serializeModelVersion(await models.setStatus(caller, args, status)),
          };
        },
        createModelRepoUpload: noUploads,
        completeModelRepoUpload: noUploads,
      },
    },
  };
}

function serializeModel({
  id,
  accountId,
  owner,
  name,
  provider,
  status,
  credentialType,
  credentialReference,
  versions,
  createdAt,
  updatedAt,
}: RepoModel) {
  return {
    id,
    owner,
    name,
    provider,
    status,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    users: [
      { userId: accountId, credentialType, credentialReference, status, updatedAt: isoTime(updatedAt) },
    ],
    versions: versions.map(serializeModelVersion),
  };
}

function serializeModelVersion({ uuid, hash, status, metadata, createdAt, updatedAt }: ModelVersion) {
  return { uuid, hash, status, metadata, createdAt: isoTime(createdAt), updatedAt: isoTime(updatedAt) };
}
