import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';

export const keyRevoke = command({
  name: 'key revoke',
  summary: 'Revoke an API key for good.',
  words: { ID: 'The id of the key, as "berth key list" shows it.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const id = call.words.ID;
    await client.delete(`/v2/account/api-keys/${encodeURIComponent(id)}`);
    call.output.record({ id, revoked: true });
  },
});
