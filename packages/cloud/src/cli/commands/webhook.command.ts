import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { endpointArgumentHelp, findEndpointForJobs, jobPath } from '../serverless/endpoint-client.ts';

interface Delivery {
  id: string;
  jobId: string;
  url: string;
  state: string;
  attempts: number;
  lastStatus: number | null;
  lastError: string | null;
}

const columns: Column<Delivery>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'ATTEMPTS', value: ({ attempts }) => attempts },
  { title: 'ANSWER', value: ({ lastStatus, lastError }) => lastError ?? lastStatus },
  { title: 'JOB', value: ({ jobId }) => jobId },
  { title: 'URL', value: ({ url }) => url },
];

export const webhookLs = command({
  name: 'webhook ls',
  summary: 'List the webhook deliveries of an endpoint, newest first.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: {
    job: { kind: 'text', value: 'ID', description: 'Only those of this job.' },
    ...serverOptions,
  },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, call.words.ENDPOINT);
    const query = call.options.job === undefined ? '' : `?jobId=${encodeURIComponent(call.options.job)}`;
    const { answer, rows } = await client.list<Delivery>(jobPath(endpoint, `webhooks${query}`), 'deliveries');
    call.output.printTable(answer, rows, columns, `${endpoint.name} has sent no webhook.`);
  },
});

export const webhookRedeliver = command({
  name: 'webhook redeliver',
  summary: 'Send a webhook again.',
  words: { ENDPOINT: endpointArgumentHelp, DELIVERY: 'The delivery; "berth webhook ls" lists them.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, call.words.ENDPOINT);
    const path = jobPath(endpoint, `webhooks/${encodeURIComponent(call.words.DELIVERY)}/redeliver`);
    const { id, state, url } = await client.post<Delivery>(path, {});
    call.output.printRecord({ id, state, url });
  },
});

export const webhookSecret = command({
  name: 'webhook secret',
  summary: 'Show the secret that signs the webhooks of your account.',
  details: 'It is the key of the HMAC in X-Berth-Signature. A read-only API key may not see it.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    call.output.printRecord(await client.get<{ secret: string }>('/v2/account/webhook-secret'));
  },
});
