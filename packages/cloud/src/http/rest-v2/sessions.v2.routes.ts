import type { Sessions } from '../../auth/sessions.ts';
import { scopeLevelOf } from '../../auth/scopes.ts';
import type { Caller } from '../../domain/caller.ts';
import type { ApiKey } from '../../domain/records.ts';
import type { Session } from '../../domain/session.ts';
import type { AllServices } from '../../resources/resources.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import { notFound } from '../../support/errors.ts';
import { boolean, list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { byId, dateTime } from './common.v2.schema.ts';

const grant = stringEnum(['NONE', 'READ', 'WRITE']);

const session = named(
  'Session',
  object({
    id: text(),
    keyId: text({ description: 'The key that it acts with' }),
    userAgent: text({ description: 'The browser, as it calls itself' }),
    createdAt: dateTime('When it signed in'),
    lastUsedAt: dateTime('When it was last used, to the minute'),
    expiresAt: dateTime('It ends then, and when it is not used for a week'),
    current: boolean({ description: 'The session that asks' }),
  }),
);
const sessionList = named('SessionList', object({ sessions: list(session) }));
const currentSession = named(
  'CurrentSession',
  object(
    {
      accountId: text(),
      accountName: text(),
      operator: boolean({ description: 'A key with full access of the root account' }),
      key: object({
        id: text(),
        name: text(),
        access: stringEnum(['ALL', 'READ_ONLY', 'RESTRICTED']),
        scopes: object({ rest: grant, graphql: grant, serverless: grant }),
        endpoints: nullable(list(text())),
        expiresAt: nullable(dateTime('When the key expires')),
      }),
      sessionId: nullable(text({ description: 'Null for a key that is used directly' })),
    },
    {},
    { description: 'What the caller may do' },
  ),
);
const signInLink = named(
  'SignInLink',
  object({
    url: text({ description: 'Signs in the first person who opens it' }),
    expiresAt: dateTime('It is invalid after this time'),
  }),
);

export function sessionOperations({
  keys,
  accounts,
  sessions,
  origin,
}: Pick<AllServices, 'keys' | 'accounts'> & {
  sessions: Sessions;
  origin(): string;
}): Operation[] {
  const tag = 'Sessions';
  return [
    operation({
      id: 'getCurrentSession',
      method: 'GET',
      path: '/session',
      tag,
      summary: 'Get what the caller may do: account, key and scopes',
      access: 'read',
      status: 200,
      response: currentSession,
      errorStatuses: [404],
      handle: async ({ caller }) => {
        const key = (await keys.list(caller)).find(({ id }) => id === caller.keyId);
        if (key === undefined) throw notFound('API key', caller.keyId ?? '');
        return serializeCurrent(caller, key, (await accounts.getOwn(caller)).name);
      },
    }),
    operation({
      id: 'listSessions',
      method: 'GET',
      path: '/sessions',
      tag,
      summary: 'List who is signed in to the console with a key of your account',
      access: 'read',
      status: 200,
      response: sessionList,
      handle: async ({ caller }) => ({
        sessions: (await sessions.list(caller)).map((found) => serializeSession(found, caller)),
      }),
    }),
    operation({
      id: 'createSignInLink',
      method: 'POST',
      path: '/sessions/links',
      tag,
      summary: 'Create a link that signs in to the console once, with the key of this request',
      access: 'read',
      status: 201,
      response: signInLink,
      handle: async ({ caller }) => {
        const { token, expiresAt } = await sessions.links.create(caller);
        return { url: signInUrl(origin(), token), expiresAt: isoTime(expiresAt) };
      },
    }),
    operation({
      id: 'deleteSession',
      method: 'DELETE',
      path: '/sessions/{id}',
      tag,
      summary: 'End a session, with immediate effect',
      description: 'A key ends its own sessions; a key with full access every session of its account.',
      access: 'read',
      params: byId,
      status: 204,
      errorStatuses: [404],
      handle: ({ caller, params }) => sessions.revoke(caller, params.id),
    }),
  ];
}

/** The token is in the fragment: it is in no log and no Referer header. */
export function signInUrl(origin: string, token: string): string {
  return `${origin}/login#token=${token}`;
}

function serializeCurrent(caller: Caller, key: ApiKey, accountName: string): Static<typeof currentSession> {
  const upper = (scope: 'rest' | 'graphql' | 'serverless') =>
    scopeLevelOf(key, scope).toUpperCase() as Static<typeof grant>;
  return {
    accountId: caller.accountId,
    accountName,
    operator: caller.operator,
    key: {
      id: key.id,
      name: key.name,
      access: key.access === 'all' ? 'ALL' : key.access === 'read-only' ? 'READ_ONLY' : 'RESTRICTED',
      scopes: { rest: upper('rest'), graphql: upper('graphql'), serverless: upper('serverless') },
      endpoints: key.endpoints,
      expiresAt: isoTimeOrNull(key.expiresAt),
    },
    sessionId: caller.sessionId ?? null,
  };
}

function serializeSession(found: Session, caller: Caller): Static<typeof session> {
  return {
    id: found.id,
    keyId: found.keyId,
    userAgent: found.userAgent,
    createdAt: isoTime(found.createdAt),
    lastUsedAt: isoTime(found.lastUsedAt),
    expiresAt: isoTime(found.expiresAt),
    current: found.id === caller.sessionId,
  };
}
