import { S3_ACCESS_ID_PREFIX } from '../../domain/s3-names.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

export const keyRevoke = command({
  name: 'key revoke',
  summary: 'Revoke an API key or an S3 key for good.',
  words: { ID: 'The id of the key, as "berth key list" shows it.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const id = call.words.ID;
    const kind = id.startsWith(S3_ACCESS_ID_PREFIX) ? 's3-keys' : 'api-keys';
    await client.delete(`/v2/account/${kind}/${encodeURIComponent(id)}`);
    call.output.printRecord({ id, revoked: true });
  },
});
