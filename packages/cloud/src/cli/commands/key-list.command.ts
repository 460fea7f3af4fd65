import { accountOption, keysPath, s3KeysPath } from '../account-client.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

interface S3Key {
  accessId: string;
  name: string;
  access: string;
  lastUsedAt?: string | null;
  expiresAt?: string | null;
}

interface ApiKey {
  id: string;
  name: string;
  access: string;
  scopes?: unknown;
  endpoints?: unknown;
  enabled: boolean;
  lastUsedAt?: string | null;
  expiresAt?: string | null;
}

type Listed = ApiKey & { kind: 'API' | 'S3' };

const columns: Column<Listed>[] = [
  { title: 'ID', value: (key) => key.id },
  { title: 'KIND', value: (key) => key.kind },
  { title: 'NAME', value: (key) => key.name },
  { title: 'ACCESS', value: (key) => key.access },
  { title: 'SCOPES', value: (key) => key.scopes },
  { title: 'ENDPOINTS', value: (key) => key.endpoints },
  { title: 'ENABLED', value: (key) => key.enabled },
  { title: 'LAST USED', value: (key) => key.lastUsedAt },
  { title: 'EXPIRES', value: (key) => key.expiresAt },
];

export const keyList = command({
  name: 'key list',
  summary: 'List the API keys and S3 keys of an account.',
  options: { account: accountOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const { account } = call.options;
    const [api, s3] = await Promise.all([
      client.list<ApiKey>(await keysPath(client, account), 'apiKeys'),
      client.list<S3Key>(await s3KeysPath(client, account), 's3Keys'),
    ]);
    const rows: Listed[] = [
      ...api.rows.map((key) => ({ ...key, kind: 'API' as const })),
      ...s3.rows.map(({ accessId, ...key }) => ({
        ...key,
        id: accessId,
        enabled: true,
        kind: 'S3' as const,
      })),
    ];
    call.output.printTable(
      { ...(api.answer as object), ...(s3.answer as object) },
      rows,
      columns,
      'There is no key yet.',
    );
  },
});
