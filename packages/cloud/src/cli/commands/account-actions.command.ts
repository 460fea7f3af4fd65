import { accountPath, type AccountView } from '../account-client.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

const words = { ACCOUNT: 'The account, by id or name.' };

export const accountDisable = command({
  name: 'account disable',
  summary: 'Disable an account: its keys stop working, its pods and workers stop.',
  details:
    'Everything that the account owns stays. Jobs wait until it is enabled again, as long as their ' +
    'time to live allows. For operators.',
  words,
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const path = await accountPath(client, call.words.ACCOUNT);
    const { id, name, status } = await client.post<AccountView>(`${path}/disable`, {});
    call.output.printRecord({ id, name, status });
  },
});

export const accountEnable = command({
  name: 'account enable',
  summary: 'Enable a disabled account.',
  details:
    'Its keys work again and its endpoints get workers. Its pods stay stopped until they are started. For operators.',
  words,
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const path = await accountPath(client, call.words.ACCOUNT);
    const { id, name, status } = await client.post<AccountView>(`${path}/enable`, {});
    call.output.printRecord({ id, name, status });
  },
});

export const accountRm = command({
  name: 'account rm',
  summary: 'Delete an account with all that it owns.',
  details:
    'Pods, endpoints, jobs, volumes, images, keys, secrets and logs are deleted. This cannot be ' +
    'undone. Usage and the audit log stay. For operators.',
  words,
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const path = await accountPath(client, call.words.ACCOUNT);
    await client.delete(path);
    call.output.printRecord({ id: path.slice(path.lastIndexOf('/') + 1), deleted: true });
  },
});
