import type { AccountView } from '../account-client.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

const columns: Column<AccountView>[] = [
  { title: 'ID', value: (account) => account.id },
  { title: 'NAME', value: (account) => account.name },
  { title: 'STATUS', value: (account) => account.status },
  { title: 'CREATED', value: (account) => account.createdAt },
];

export const accountList = command({
  name: 'account list',
  summary: 'List the accounts.',
  details: 'Operators only: this needs a key of the root account.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { answer, rows } = await client.list<AccountView>('/v2/accounts', 'accounts');
    call.output.printTable(answer, rows, columns, 'There is no account yet.');
  },
});
