import type { NewS3Key, S3Keys } from '../../resources/keys/s3-keys.ts';
import type { AllServices } from '../../resources/resources.ts';
import type { S3Key } from '../../domain/records.ts';
import { isoTime, isoTimeOrNull } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { list, named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import type { Static } from '../rest/json-schema.ts';
import { byId, dateTime } from './common.v2.schema.ts';
import { MAX_NAME_LENGTH } from '../../domain/limits.ts';

const access = stringEnum(['ALL', 'READ_ONLY'], {
  description: 'Reading and writing the objects of every network volume of the account, or reading them',
});
const expiresAt = nullable(dateTime('After this it signs nothing; null is never'));

const s3KeyFields = {
  accessId: text({ description: 'The access key id of an S3 client' }),
  name: text(),
  access,
  createdAt: dateTime('When it was made'),
  lastUsedAt: nullable(dateTime('When it last signed a request, to the minute')),
  expiresAt,
};
const s3Key = named(
  'S3Key',
  object(
    s3KeyFields,
    {},
    { description: 'A key for the S3 interface of network volumes, without its secret' },
  ),
);
const s3KeyList = named('S3KeyList', object({ s3Keys: list(s3Key) }));
const newS3Key = named(
  'NewS3Key',
  object({
    ...s3KeyFields,
    secret: text({ description: 'The secret access key of an S3 client. Shown once' }),
  }),
);
const createS3Key = named(
  'CreateS3Key',
  object({ name: text({ minLength: 1, maxLength: MAX_NAME_LENGTH }) }, { access, expiresAt }),
);

const ACCESS_LEVEL_BY_WORD: Record<Static<typeof access>, S3Key['access']> = {
  ALL: 'all',
  READ_ONLY: 'read-only',
};

export function s3KeyOperations({ s3Keys }: Pick<AllServices, 's3Keys'>): Operation[] {
  const tag = 'API keys';
  const create = async (
    caller: Parameters<S3Keys['create']>[0],
    body: Static<typeof createS3Key>,
    accountId?: string,
  ): Promise<Static<typeof newS3Key>> => {
    const { record, secret } = await s3Keys.create(caller, readFields(body), accountId);
    return { ...serializeS3Key(record), secret };
  };
  return [
    operation({
      id: 'listS3Keys',
      method: 'GET',
      path: '/account/s3-keys',
      tag,
      summary: 'List the S3 keys of your account',
      access: 'read',
      status: 200,
      response: s3KeyList,
      handle: async ({ caller }) => ({ s3Keys: (await s3Keys.list(caller)).map(serializeS3Key) }),
    }),
    operation({
      id: 'createS3Key',
      method: 'POST',
      path: '/account/s3-keys',
      tag,
      summary: 'Create an S3 key',
      access: 'write',
      description: 'Needs a key with full access. The secret is in this answer and in no other.',
      body: createS3Key,
      status: 201,
      response: newS3Key,
      errorStatuses: [400, 413, 422],
      handle: ({ caller, body }) => create(caller, body),
    }),
    operation({
      id: 'deleteS3Key',
      method: 'DELETE',
      path: '/account/s3-keys/{id}',
      tag,
      summary: 'Revoke an S3 key, with immediate effect',
      access: 'write',
      params: byId,
      status: 204,
      errorStatuses: [404],
      handle: ({ caller, params }) => s3Keys.revoke(caller, params.id),
    }),
    operation({
      id: 'listAccountS3Keys',
      method: 'GET',
      path: '/accounts/{id}/s3-keys',
      tag: 'Accounts',
      summary: 'List the S3 keys of an account',
      access: 'operator',
      params: byId,
      status: 200,
      response: s3KeyList,
      errorStatuses: [404],
      handle: async ({ caller, params }) => ({
        s3Keys: (await s3Keys.list(caller, params.id)).map(serializeS3Key),
      }),
    }),
    operation({
      id: 'createAccountS3Key',
      method: 'POST',
      path: '/accounts/{id}/s3-keys',
      tag: 'Accounts',
      summary: 'Create an S3 key for an account',
      access: 'operator',
      params: byId,
      body: createS3Key,
      status: 201,
      response: newS3Key,
      errorStatuses: [400, 404, 413, 422],
      handle: ({ caller, params, body }) => create(caller, body, params.id),
    }),
  ];
}

function readFields({
  name,
  access: level = 'ALL',
  expiresAt: expires,
}: Static<typeof createS3Key>): NewS3Key {
  return {
    name,
    access: ACCESS_LEVEL_BY_WORD[level],
    ...(expires !== undefined && { expiresAt: expires === null ? null : Date.parse(expires) }),
  };
}

function serializeS3Key(key: S3Key): Static<typeof s3Key> {
  return {
    accessId: key.id,
    name: key.name,
    access: key.access === 'all' ? 'ALL' : 'READ_ONLY',
    createdAt: isoTime(key.createdAt),
    lastUsedAt: isoTimeOrNull(key.lastUsedAt),
    expiresAt: isoTimeOrNull(key.expiresAt),
  };
}
