import type { Caller } from '../../domain/caller.ts';
import type { LoginRequestView } from '../../resources/keys/login-requests.ts';
import type { ResourceServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { requireFields } from './graphql-input-checks.ts';
import type { GraphqlModule } from './graphql-module.ts';

const sdl = `
  enum FlashAuthStatus { PENDING APPROVED DENIED EXPIRED CONSUMED }
  "A program that asks for a key of its own"
  type FlashAuthRequest {
    id: String
    status: FlashAuthStatus
    expiresAt: DateTime
    "There once, when the request was approved"
    apiKey: String
    codeChallenge: String
    codeChallengeMethod: String
  }
  extend type Query { flashAuthRequestStatus(flashAuthRequestId: String): FlashAuthRequest }
  extend type Mutation {
    createFlashAuthRequest(apiKeyName: String, codeChallenge: String, codeChallengeMethod: String): FlashAuthRequest
    "Berth only: gives the program a key of this account; needs a key with full access"
    approveFlashAuthRequest(flashAuthRequestId: String): FlashAuthRequest
    "Berth only"
    denyFlashAuthRequest(flashAuthRequestId: String): FlashAuthRequest
  }
`;

interface RequestIdArgs {
  flashAuthRequestId?: string;
}

export function loginRequestModule({ loginRequests }: ResourceServices): GraphqlModule {
  return {
    sdl,
    publicResolvers: {
      Query: {
        flashAuthRequestStatus: async (args: RequestIdArgs) =>
          serializeLoginRequest(
            await loginRequests.poll(requireFields(args, 'flashAuthRequestId').flashAuthRequestId),
          ),
      },
      Mutation: {
        createFlashAuthRequest: async ({
          apiKeyName,
          codeChallenge,
          codeChallengeMethod,
        }: {
          apiKeyName?: string;
          codeChallenge?: string;
          codeChallengeMethod?: string;
        }) =>
          serializeLoginRequest(
            await loginRequests.create({ keyName: apiKeyName, codeChallenge, codeChallengeMethod }),
          ),
      },
    },
    authenticatedResolvers: {
      Mutation: {
        approveFlashAuthRequest: async (args: RequestIdArgs, caller: Caller) =>
          serializeLoginRequest(
            await loginRequests.approve(caller, requireFields(args, 'flashAuthRequestId').flashAuthRequestId),
          ),
        denyFlashAuthRequest: async (args: RequestIdArgs, caller: Caller) =>
          serializeLoginRequest(
            await loginRequests.deny(caller, requireFields(args, 'flashAuthRequestId').flashAuthRequestId),
          ),
      },
    },
  };
}

function serializeLoginRequest({
  id,
  status,
  expiresAt,
  key,
  codeChallenge,
  codeChallengeMethod,
}: LoginRequestView) {
  return { id, status, expiresAt: isoTime(expiresAt), apiKey: key, codeChallenge, codeChallengeMethod };
}
