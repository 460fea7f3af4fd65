import { KEY_SHOWN_ONCE } from '../account-client.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

export const accountCreate = command({
  name: 'account create',
  summary: 'Create an account and its first key.',
  details:
    'Accounts are isolated from each other. The key has full access to its account. For operators: ' +
    'this needs a key of the root account.',
  words: { NAME: 'The name of the account.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { id, name, key } = await client.post<{ id: string; name: string; key: string }>('/v2/accounts', {
      name: call.words.NAME,
    });
    call.output.printRecord({ id, name, key }, KEY_SHOWN_ONCE);
  },
});
