import { spawn } from 'node:child_process';
import { connect } from '../client.ts';
import { command } from '../command.ts';
import { Failure } from '../failure.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, httpUrls, podWord } from '../pods/pods.ts';
import { readCount } from '../serverless/order.ts';

export const podOpen = command({
  name: 'pod open',
  summary: 'Show the address of an HTTP port of a pod, and open it in a browser.',
  details: 'It is opened on a desktop alone, and where the output is a terminal.',
  words: { POD: podWord },
  options: {
    port: { kind: 'text', value: 'PORT', description: 'Which one. Default: the first.' },
    print: { kind: 'switch', description: 'Show the address and open nothing.' },
    ...serverOptions,
  },
  async run(call) {
    const port = readCount('port', call.options.port, 1);
    const client = await connect(call);
    const pod = await findPod(client, call.words.POD);
    const urls = httpUrls(client, pod);
    const url = port === undefined ? urls[0] : urls.find((one) => one.endsWith(`-${port}/`));
    if (url === undefined)
      throw new Failure(
        `pod ${pod.name} (${pod.id}) has no HTTP port${port === undefined ? '' : ` ${port}`}; it declares ${pod.ports.join(', ') || 'none at all'}`,
      );
    call.output.record({ id: pod.id, url });
    const opener = call.output.forPeople && !call.options.print ? openerOf(call.env) : undefined;
    if (opener === undefined) return;
    const browser = spawn(opener, [url], { stdio: 'ignore', detached: true });
    // Whoever has no browser has the address.
    browser.on('error', () => undefined);
    browser.unref();
  },
});

function openerOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  if (process.platform === 'darwin') return 'open';
  return process.platform === 'linux' && (env['DISPLAY'] || env['WAYLAND_DISPLAY']) ? 'xdg-open' : undefined;
}
