import { accountOption, keysPath, s3KeysPath, KEY_SHOWN_ONCE } from '../account-client.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { parseExpiry } from '../key-expiry.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import type { Output } from '../output.ts';
import type { CliContext } from '../cli-context.ts';

const ACCESS = { all: 'ALL', 'read-only': 'READ_ONLY', restricted: 'RESTRICTED' } as const;
const SCOPE = { none: 'NONE', read: 'READ', write: 'WRITE' } as const;

const access = ['all', 'read-only', 'restricted'] as const;
const scope = ['none', 'read', 'write'] as const;

export const keyCreate = command({
  name: 'key create',
  summary: 'Create an API key, or an S3 key, and show it once.',
  details:
    'A restricted key has only the given scopes; the default of a scope is none. With --s3, creates a ' +
    'key for S3 clients: an access id and a secret for the files of network volumes.',
  options: {
    name: { kind: 'text', value: 'NAME', description: 'What the key is for. Required, except with --s3.' },
    access: {
      kind: 'text',
      choices: access,
      description:
        'The access of the key: everything in its account, everything read-only, or only the scopes ' +
        'below. Needed, except with --s3, where it is all or read-only.',
    },
    s3: { kind: 'switch', description: 'Create an S3 key.' },
    rest: {
      kind: 'text',
      choices: scope,
      description: 'Scope for REST v1 and v2, with --access restricted.',
    },
    graphql: { kind: 'text', choices: scope, description: 'Scope for GraphQL, with --access restricted.' },
    serverless: {
      kind: 'text',
      choices: scope,
      description: 'Scope for the job API, with --access restricted.',
    },
    endpoint: {
      kind: 'list',
      value: 'ID',
      description:
        'Narrow the job API to this endpoint, with --access restricted. May be repeated. The ' +
        'scope is write unless --serverless says otherwise.',
    },
    expires: {
      kind: 'text',
      value: 'WHEN',
      description:
        'When it expires: a duration from now such as 30m, 12h or 7d, or a time such as 2026-12-31T12:00:00Z.',
    },
    account: accountOption,
    ...serverOptions,
  },
  async run(call) {
    const { name, access: chosen, rest, graphql, serverless, endpoint, expires, account, s3 } = call.options;
    const restricted = chosen === 'restricted';
    if (
      !restricted &&
      (rest !== undefined || graphql !== undefined || serverless !== undefined || endpoint.length > 0)
    ) {
      throw new UsageError('--rest, --graphql, --serverless and --endpoint go with --access restricted');
    }
    if (s3) return createS3Key(call, chosen);
    if (name === undefined) throw new UsageError('--name is needed');
    if (chosen === undefined) throw new UsageError(`--access is needed: ${access.join(', ')}`);
    const body = {
      name,
      access: ACCESS[chosen],
      ...(restricted
        ? {
            scopes: {
              rest: SCOPE[rest ?? 'none'],
              graphql: SCOPE[graphql ?? 'none'],
              serverless: SCOPE[serverless ?? (endpoint.length > 0 ? 'write' : 'none')],
            },
          }
        : {}),
      ...(endpoint.length > 0 ? { endpoints: endpoint } : {}),
      ...(expires === undefined ? {} : { expiresAt: parseExpiry(expires, call.clock.now()) }),
    };
    const client = await connect(call);
    const { id, key } = await client.post<{ id: string; key: string }>(await keysPath(client, account), body);
    call.output.printRecord({ id, key }, KEY_SHOWN_ONCE);
  },
});

async function createS3Key(
  call: CliContext & {
    output: Output;
    options: {
      name: string | undefined;
      expires: string | undefined;
      account: string | undefined;
      data: string | undefined;
    };
  },
  chosen: (typeof access)[number] | undefined,
): Promise<void> {
  const { name = 'S3', expires, account } = call.options;
  if (chosen === 'restricted') throw new UsageError('an S3 key has --access all or read-only');
  const client = await connect(call);
  const body = {
    name,
    access: ACCESS[chosen ?? 'all'],
    ...(expires === undefined ? {} : { expiresAt: parseExpiry(expires, call.clock.now()) }),
  };
  const { accessId, secret } = await client.post<{ accessId: string; secret: string }>(
    await s3KeysPath(client, account),
    body,
  );
  call.output.printRecord(
    { accessId, secret },
    'The secret is shown once. Keep it now.',
    `The S3 endpoint is ${client.url}/s3 (path style); a bucket is the id of a network volume, its ` +
      'region the data center.',
  );
}
