import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

interface CurrentSession {
  accountId: string;
  accountName: string;
  operator: boolean;
  key: { id: string; name: string; access: string; scopes: object; expiresAt: string | null };
}

export const whoami = command({
  name: 'whoami',
  summary: 'Show which server, account and key the commands use.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const session = await client.get<CurrentSession>('/v2/session');
    const { accountId, accountName, operator, key } = session;
    call.output.printRecord(
      call.output.isText
        ? {
            server: client.url,
            account: `${accountName} (${accountId})`,
            key: `${key.name} (${key.id}), from ${client.keyOrigin}`,
            access: key.access,
            scopes: key.scopes,
            operator,
            expires: key.expiresAt,
          }
        : { server: client.url, ...session },
    );
  },
});
