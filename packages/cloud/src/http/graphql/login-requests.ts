import type { Caller } from '../../resources/caller.ts';
import type { ShownLoginRequest } from '../../resources/keys/login-requests.ts';
import type { Resources } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import { required } from './inputs.ts';
import type { Part } from './part.ts';

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
    "Of Berth alone: gives the program a key of this account; needs a key with full access"
    approveFlashAuthRequest(flashAuthRequestId: String): FlashAuthRequest
    "Of Berth alone"
    denyFlashAuthRequest(flashAuthRequestId: String): FlashAuthRequest
  }
`;

interface Named {
  flashAuthRequestId?: string;
}

export function loginRequestPart({ loginRequests }: Resources): Part {
  return {
    sdl,
    open: {
      Query: {
        flashAuthRequestStatus: async (args: Named) =>
          show(await loginRequests.look(required(args, 'flashAuthRequestId').flashAuthRequestId)),
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
        }) => show(await loginRequests.create({ keyName: apiKeyName, codeChallenge, codeChallengeMethod })),
      },
    },
    keyed: {
      Mutation: {
        approveFlashAuthRequest: async (args: Named, caller: Caller) =>
          show(await loginRequests.approve(caller, required(args, 'flashAuthRequestId').flashAuthRequestId)),
        denyFlashAuthRequest: async (args: Named, caller: Caller) =>
          show(await loginRequests.deny(caller, required(args, 'flashAuthRequestId').flashAuthRequestId)),
      },
    },
  };
}

function show({ id, status, expiresAt, key, codeChallenge, codeChallengeMethod }: ShownLoginRequest) {
  return { id, status, expiresAt: isoTime(expiresAt), apiKey: key, codeChallenge, codeChallengeMethod };
}
