import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { openBrowser } from '../open-browser.ts';
import { serverOptions } from '../local-server.ts';

export const console = command({
  name: 'console',
  summary: 'Show a link that signs in to the web console, and open it in a browser.',
  details:
    'The link works once, for an hour. A browser is opened only on a desktop and if the output is a terminal.',
  options: {
    print: { kind: 'switch', description: 'Show the link and open nothing.' },
    ...serverOptions,
  },
  async run(call) {
    const client = await connect(call);
    const link = await client.post<{ url: string; expiresAt: string }>('/v2/sessions/links', undefined);
    call.output.printRecord(link);
    if (call.output.isInteractive && !call.options.print) openBrowser(link.url, call.env);
  },
});
