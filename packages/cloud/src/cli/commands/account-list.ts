import type { Account } from '../account.ts';
import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

const columns: Column<Account>[] = [
  { title: 'ID', value: (account) => account.id },
  { title: 'NAME', value: (account) => account.name },
  { title: 'CREATED', value: (account) => account.createdAt },
];

export const accountList = command({
  name: 'account list',
  summary: 'List the accounts.',
  details: 'For operators: this needs a key of the root account.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { answer, rows } = await client.list<Account>('/v2/accounts', 'accounts');
    call.output.table(answer, rows, columns, 'There is no account yet.');
  },
});
