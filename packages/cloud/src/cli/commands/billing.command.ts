import { BUCKET_SIZES } from '../../domain/time-buckets.ts';
import { connect } from '../connect.ts';
import { UsageError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { parseCount } from '../serverless/deploy-options.ts';

type Bill = Record<string, string | number>;
const KINDS = ['pods', 'serverless', 'network-volumes', 'clusters'] as const;
const DEFAULT_BUCKETS = 30;
/** Begins the last line, the sum of the others. */
const TOTAL = 'total';

const dollars = (value: unknown): string => (typeof value === 'number' ? value.toFixed(4) : '-');
const columns: Column<Bill>[] = [
  {
    title: 'FROM',
    value: ({ startTime }) =>
      String(startTime ?? TOTAL)
        .slice(0, 16)
        .replace('T', ' '),
  },
  {
    title: 'OF',
    value: (bill) =>
      bill['podId'] ??
      bill['serverlessId'] ??
      bill['networkVolumeId'] ??
      bill['clusterId'] ??
      bill['accountName'],
  },
  { title: 'TOTAL $', value: ({ totalAmount }) => dollars(totalAmount) },
];

export const billing = command({
  name: 'billing',
  summary: 'Show what was used and cost.',
  details: 'The last line is the total. It is in the table only, not in JSON.',
  words: { 'KIND?': `Only this, by resource: ${KINDS.join(', ')}.` },
  options: {
    by: { kind: 'text', choices: BUCKET_SIZES, description: 'The period of each line. Default: day.' },
    accounts: { kind: 'switch', description: 'By account, for all accounts. For operators.' },
    csv: { kind: 'switch', description: 'Print CSV: by kind, or with --accounts by account and kind.' },
    last: { kind: 'text', value: 'N', description: `How many of them. Default: ${DEFAULT_BUCKETS}.` },
    ...serverOptions,
  },
  async run(call) {
    const last = parseCount('last', call.options.last, 1) ?? DEFAULT_BUCKETS;
    const { KIND: kind } = call.words;
    const { accounts, csv } = call.options;
    if (kind !== undefined && (accounts || csv))
      throw new UsageError(
        `${JSON.stringify(kind)} and --${accounts ? 'accounts' : 'csv'} exclude each other`,
      );
    const client = await connect(call);
    const window = `bucketSize=${call.options.by ?? 'day'}&lastN=${last}`;
    if (csv) {
      const path = `/v2/billing/export?${window}&by=${accounts ? 'account' : 'kind'}`;
      const response = await client.send('GET', path, undefined, { accept: 'text/csv' });
      if (!response.ok) throw await client.errorFrom(response);
      return call.output.printText(await response.text());
    }
    const below = accounts ? '/accounts' : kind === undefined ? '' : `/${encodeURIComponent(kind)}`;
    const { answer, rows } = await client.list<Bill>(`/v2/billing${below}?${window}`, 'records');
    const totalAmount = rows.reduce((sum, bill) => sum + Number(bill['totalAmount'] ?? 0), 0);
    const withTotal = rows.length > 0 && call.output.isText ? [...rows, { totalAmount }] : rows;
    call.output.printTable(answer, withTotal, columns, 'Nothing was used.');
  },
});
