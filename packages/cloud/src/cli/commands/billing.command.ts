import { BUCKET_SIZES } from '../../domain/time-buckets.ts';
import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { parseCount } from '../serverless/deploy-options.ts';

type Bill = Record<string, string | number>;
const KINDS = ['pods', 'serverless', 'network-volumes', 'clusters'] as const;
const DEFAULT_BUCKETS = 30;

const dollars = (value: unknown): string => (typeof value === 'number' ? value.toFixed(4) : '-');
const columns: Column<Bill>[] = [
  { title: 'FROM', value: ({ startTime }) => String(startTime).slice(0, 16).replace('T', ' ') },
  {
    title: 'OF',
    value: (bill) => bill['podId'] ?? bill['serverlessId'] ?? bill['networkVolumeId'] ?? bill['clusterId'],
  },
  { title: 'TOTAL $', value: ({ totalAmount }) => dollars(totalAmount) },
];

export const billing = command({
  name: 'billing',
  summary: 'Show what was used and cost.',
  words: { 'KIND?': `Only this, by resource: ${KINDS.join(', ')}.` },
  options: {
    by: { kind: 'text', choices: BUCKET_SIZES, description: 'How long each line is. Default: day.' },
    last: { kind: 'text', value: 'N', description: `How many of them. Default: ${DEFAULT_BUCKETS}.` },
    ...serverOptions,
  },
  async run(call) {
    const last = parseCount('last', call.options.last, 1) ?? DEFAULT_BUCKETS;
    const client = await connect(call);
    const kind = call.words.KIND === undefined ? '' : `/${encodeURIComponent(call.words.KIND)}`;
    const path = `/v2/billing${kind}?bucketSize=${call.options.by ?? 'day'}&lastN=${last}`;
    const { answer, rows } = await client.list<Bill>(path, 'records');
    call.output.printTable(answer, rows, columns, 'Nothing was used.');
  },
});
