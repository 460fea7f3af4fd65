import { EVENT_SUBJECTS } from '../../domain/account-event.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { formatValue } from '../output.ts';
import { findPod } from '../pods/pod-client.ts';
import { findEndpointForJobs } from '../serverless/endpoint-client.ts';

export const events = command({
  name: 'events',
  summary: 'Follow the changes in your account, until Ctrl-C.',
  details:
    'With -o json, each event is one line of JSON. The first event is "ready": no change after it ' +
    'is missed.',
  options: {
    type: {
      kind: 'list',
      choices: EVENT_SUBJECTS,
      description: 'Only events about these. May be repeated.',
    },
    endpoint: { kind: 'text', value: 'ENDPOINT', description: 'Only events about this endpoint.' },
    pod: { kind: 'text', value: 'POD', description: 'Only events about this pod.' },
    'no-follow': { kind: 'switch', description: 'Show the first event and end.' },
    ...serverOptions,
  },
  async run(call) {
    const { options, output } = call;
    const client = await connect(call);
    const query = new URLSearchParams({
      ...(options.type.length > 0 && { types: options.type.join(',') }),
      ...(options.endpoint !== undefined && {
        endpointId: (await findEndpointForJobs(client, options.endpoint)).id,
      }),
      ...(options.pod !== undefined && { podId: (await findPod(client, options.pod)).id }),
      ...(options['no-follow'] && { follow: 'false' }),
    });
    const interrupt = call.onInterrupt?.() ?? new AbortController().signal;
    for await (const { data } of client.events(`/v2/events?${query.toString()}`, interrupt))
      output.printText(output.isText ? formatEvent(data) : `${data}\n`);
  },
});

/** `12:31:05.123  worker.changed  endpointId=… status=RUNNING` */
function formatEvent(data: string): string {
  const { type, at, ...fields } = JSON.parse(data) as { type: string; at?: string };
  const time = at === undefined ? '' : `${at.slice(11, 23)}  `;
  const rest = Object.keys(fields).length === 0 ? '' : `  ${formatValue(fields)}`;
  return `${time}${formatValue(type)}${rest}\n`;
}
