import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { openBrowser } from '../open-browser.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podHttpUrls, podArgumentHelp } from '../pods/pod-client.ts';
import { parseCount } from '../serverless/deploy-options.ts';

export const podOpen = command({
  name: 'pod open',
  summary: 'Show the address of an HTTP port of a pod, and open it in a browser.',
  details: 'A browser is opened only on a desktop and if the output is a terminal.',
  words: { POD: podArgumentHelp },
  options: {
    port: { kind: 'text', value: 'PORT', description: 'Which one. Default: the first.' },
    print: { kind: 'switch', description: 'Show the address and open nothing.' },
    ...serverOptions,
  },
  async run(call) {
    const port = parseCount('port', call.options.port, 1);
    const client = await connect(call);
    const pod = await findPod(client, call.words.POD);
    const urls = podHttpUrls(client, pod);
    const url = port === undefined ? urls[0] : urls.find((one) => one.endsWith(`-${port}/`));
    if (url === undefined)
      throw new CliError(
        `pod ${pod.name} (${pod.id}) has no HTTP port${port === undefined ? '' : ` ${port}`}; it ` +
          `declares ${pod.ports.join(', ') || 'none at all'}`,
      );
    call.output.printRecord({ id: pod.id, url });
    if (call.output.isInteractive && !call.options.print) openBrowser(url, call.env);
  },
});
