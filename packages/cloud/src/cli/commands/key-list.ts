import { accountOption, keysPath } from '../account.ts';
import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

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

const columns: Column<ApiKey>[] = [
  { title: 'ID', value: (key) => key.id },
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
  summary: 'List the API keys of an account.',
  options: { account: accountOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const { answer, rows } = await client.list<ApiKey>(await keysPath(client, call.options.account), 'apiKeys');
    call.output.table(answer, rows, columns, 'There is no key yet.');
  },
});
