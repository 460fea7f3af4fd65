import { accountOption, keysPath, SHOWN_ONCE } from '../account.ts';
import { connect } from '../client.ts';
import { command } from '../command.ts';
import { readExpiry } from '../expiry.ts';
import { UsageError } from '../failure.ts';
import { serverOptions } from '../local-server.ts';

const ACCESS = { all: 'ALL', 'read-only': 'READ_ONLY', restricted: 'RESTRICTED' } as const;
const SCOPE = { none: 'NONE', read: 'READ', write: 'WRITE' } as const;

const access = ['all', 'read-only', 'restricted'] as const;
const scope = ['none', 'read', 'write'] as const;

export const keyCreate = command({
  name: 'key create',
  summary: 'Create an API key and show it once.',
  details: 'A restricted key opens what its scopes name and nothing else; a scope that is left out is none.',
  options: {
    name: { kind: 'text', value: 'NAME', required: true, description: 'What the key is for.' },
    access: { kind: 'text', choices: access, required: true, description: 'What it opens: everything of its account, everything but only to read, or what the scopes below say.' },
    rest: { kind: 'text', choices: scope, description: 'Scope for REST v1 and v2, with --access restricted.' },
    graphql: { kind: 'text', choices: scope, description: 'Scope for GraphQL, with --access restricted.' },
    serverless: { kind: 'text', choices: scope, description: 'Scope for the job interface, with --access restricted.' },
    endpoint: {
      kind: 'list',
      value: 'ID',
      description: 'Narrow the job interface to this endpoint, with --access restricted. May be repeated. The scope is write unless --serverless says otherwise.',
    },
    expires: { kind: 'text', value: 'WHEN', description: 'When it ends: a duration from now such as 30m, 12h or 7d, or an instant such as 2026-12-31T12:00:00Z.' },
    account: accountOption,
    ...serverOptions,
  },
  async run(call) {
    const { name, access: chosen, rest, graphql, serverless, endpoint, expires, account } = call.options;
    const restricted = chosen === 'restricted';
    if (!restricted && (rest !== undefined || graphql !== undefined || serverless !== undefined || endpoint.length > 0)) {
      throw new UsageError('--rest, --graphql, --serverless and --endpoint go with --access restricted');
    }
    const body = {
      name,
      access: ACCESS[chosen],
      ...(restricted ? { scopes: { rest: SCOPE[rest ?? 'none'], graphql: SCOPE[graphql ?? 'none'], serverless: SCOPE[serverless ?? (endpoint.length > 0 ? 'write' : 'none')] } } : {}),
      ...(endpoint.length > 0 ? { endpoints: endpoint } : {}),
      ...(expires === undefined ? {} : { expiresAt: readExpiry(expires, call.clock.now()) }),
    };
    const client = await connect(call);
    const { id, key } = await client.post<{ id: string; key: string }>(await keysPath(client, account), body);
    call.output.record({ id, key }, SHOWN_ONCE);
  },
});
