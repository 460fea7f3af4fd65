import { useMemo } from 'react';
import { queryText } from '../api/client.ts';
import { useApi } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Chart } from '../components/chart.tsx';
import { Segmented } from '../components/form.tsx';
import { formatMoney } from '../components/format.ts';
import { Card, Page, Stat } from '../components/page.tsx';
import { Loaded } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { useUrlState } from '../components/url-state.ts';
import { costByGroup, costSeries, groupedRecords, lastDays } from './billing-sums.ts';
import type { BillingRecord } from './billing-sums.ts';
import { Limits, OtherAccounts } from './billing-limits.tsx';

type View = 'day' | 'pod' | 'endpoint' | 'volume' | 'cluster' | 'account';

interface BillingAnswer {
  records: BillingRecord[];
}

const VIEWS: Record<View, { label: string; path: string; group?: string; link?: string }> = {
  day: { label: 'All', path: '/v2/billing' },
  endpoint: {
    label: 'Endpoints',
    path: '/v2/billing/serverless',
    group: 'serverlessId',
    link: '/serverless/',
  },
  pod: { label: 'Pods', path: '/v2/billing/pods', group: 'podId', link: '/pods/' },
  volume: {
    label: 'Volumes',
    path: '/v2/billing/network-volumes',
    group: 'networkVolumeId',
    link: '/storage/',
  },
  cluster: { label: 'Clusters', path: '/v2/billing/clusters', group: 'clusterId', link: '/clusters/' },
  account: { label: 'Accounts', path: '/v2/billing/accounts', group: 'accountId' },
};
const SPANS = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
] as const;

export default function BillingPage() {
  const { operator } = usePermissions();
  const [view, setView] = useUrlState('by', 'day');
  const [days, setDays] = useUrlState('days', '30');
  const shown = VIEWS[view as View] ?? VIEWS.day;
  const answer = useApi<BillingAnswer>(shown.path, { query: { lastN: days }, keepPrevious: true });
  const views = (Object.keys(VIEWS) as View[]).filter((name) => name !== 'account' || operator);
  const exported = view === 'account' ? 'account' : view === 'day' ? 'kind' : 'resource';
  return (
    <Page
      title="Billing"
      description="What was used and what it cost, in US dollars, by day in UTC. Prices are the operator's."
      actions={
        <>
          <select
            className="input"
            style={{ width: 'auto' }}
            aria-label="Time"
            value={days}
            onChange={(event) => setDays(event.target.value)}
          >
            {SPANS.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
          <a
            className="button"
            href={`/v2/billing/export${queryText({ lastN: days, by: exported })}`}
            download={`billing-by-${exported}.csv`}
          >
            Export CSV
          </a>
        </>
      }
    >
      <div style={{ overflowX: 'auto' }}>
        <Segmented
          label="Costs by"
          value={view as View}
          options={views.map((name) => [name, VIEWS[name].label] as const)}
          onChange={setView}
        />
      </div>
      <Loaded of={answer}>
        {({ records }) => <Costs records={records} view={view as View} days={Number(days)} />}
      </Loaded>
      <Limits />
      {operator && <OtherAccounts />}
    </Page>
  );
}

function Costs({ records, view, days }: { records: BillingRecord[]; view: View; days: number }) {
  const { group, link } = VIEWS[view];
  const chart = useMemo(
    () =>
      costSeries(
        view === 'day' ? records : groupedRecords(records, group ?? ''),
        view === 'day',
        lastDays(days, Date.now()),
      ),
    [records, view, group, days],
  );
  const total = records.reduce((sum, record) => sum + Number(record['totalAmount'] ?? 0), 0);
  const groups = useMemo(() => (group === undefined ? [] : costByGroup(records, group)), [records, group]);
  return (
    <div className="stack lg">
      <div className="grid">
        <Stat label="In this time" value={formatMoney(total)} />
        <Stat label="Per day" value={formatMoney(total / days)} hint="on average" />
      </div>
      <Card title="By day">
        {records.length === 0 ? (
          <p className="muted">Nothing was used in this time.</p>
        ) : (
          <Chart
            label={`Costs of ${days} days, together ${formatMoney(total)}`}
            kind="bars"
            format={formatMoney}
            times={chart.times}
            series={chart.series}
          />
        )}
      </Card>
      {group !== undefined && groups.length > 0 && (
        <Card flush title={VIEWS[view].label}>
          <DataTable
            label={`Costs of ${VIEWS[view].label.toLowerCase()}`}
            rows={groups}
            rowKey={({ id }) => id}
            columns={[
              {
                header: view === 'account' ? 'Account' : 'Id',
                cell: ({ id, name }) =>
                  link === undefined ? (name ?? id) : <a href={`${link}${id}`}>{name ?? id}</a>,
              },
              { header: 'Cost', kind: 'number', cell: ({ amount }) => formatMoney(amount) },
              {
                header: 'Share',
                kind: 'number',
                cell: ({ amount }) => (total === 0 ? '' : `${Math.round((amount / total) * 100)} %`),
              },
            ]}
          />
        </Card>
      )}
    </div>
  );
}
