import { useMemo, useState } from 'react';
import { queryText } from '../api/client.ts';
import { useApi, useWrite } from '../api/queries.ts';
import type { Account, AccountLimits } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Chart } from '../components/chart.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { Segmented, SelectField, TextField } from '../components/form.tsx';
import { formatBytes, formatCount, formatMoney } from '../components/format.ts';
import { Card, Page, Stat } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { Loaded } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { useUrlState } from '../components/url-state.ts';
import { costByGroup, costSeries, groupedRecords, lastDays } from './billing-sums.ts';
import type { BillingRecord } from './billing-sums.ts';

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
            label={VIEWS[view].label}
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

function Limits() {
  const limits = useApi<AccountLimits>('/v2/account/limits');
  return (
    <Card flush title="Limits of this account">
      <Loaded of={limits}>
        {({ limits: rows }) => (
          <DataTable
            label="Limits"
            rows={rows}
            rowKey={({ name }) => name}
            columns={[
              { header: 'Limit', cell: ({ name }) => LIMIT_WORDS[name] ?? name },
              { header: 'Used', kind: 'number', cell: ({ name, used }) => amountOf(name, used) },
              {
                header: 'At most',
                kind: 'number',
                cell: ({ name, limit }) => (limit === null ? 'no limit' : amountOf(name, limit)),
              },
              { header: 'State', cell: ({ warning }) => (warning ? <Badge tone="warn">near</Badge> : '') },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

/** For operators: the limits of every account. */
function OtherAccounts() {
  const accounts = useApi<{ accounts: Account[] }>('/v2/accounts');
  const save = useWrite('/v2/accounts', '/v2/account/limits');
  const [edited, setEdited] = useState<Account>();
  const [name, setName] = useState('pods');
  const [value, setValue] = useState('');
  return (
    <>
      <ResourceList
        label="Accounts"
        title="Accounts"
        of={{ ...accounts, data: accounts.data?.accounts } as never}
        rowKey={(account: Account) => account.id}
        rowName={(account) => account.name}
        searchText={({ name: text, id }) => `${text} ${id}`}
        columns={[
          { header: 'Name', cell: (account) => account.name },
          { header: 'Id', cell: ({ id }) => <code>{id}</code> },
          {
            header: 'Status',
            cell: ({ status }) => <Badge tone={status === 'active' ? 'good' : 'warn'}>{status}</Badge>,
          },
        ]}
        rowActions={(account) => [{ label: 'Set a limit', onSelect: () => setEdited(account) }]}
        empty={null}
      />
      <FormDialog
        open={edited !== undefined}
        onClose={() => setEdited(undefined)}
        title={`A limit of ${edited?.name ?? ''}`}
        description="Bytes, US dollars a month, or how many. Empty removes the limit."
        submit="Set"
        onSubmit={() =>
          save.mutateAsync({
            path: `/v2/accounts/${edited?.id ?? ''}/limits`,
            method: 'PATCH',
            body: { [name]: value === '' ? null : Number(value) },
          })
        }
      >
        <SelectField
          label="Limit"
          value={name}
          onChange={(event) => setName(event.target.value)}
          options={Object.entries(LIMIT_WORDS)}
        />
        <TextField
          label="At most"
          type="number"
          min={0}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      </FormDialog>
    </>
  );
}

const LIMIT_WORDS: Record<string, string> = {
  queuedJobs: 'Jobs that wait',
  queuedBytes: 'Bytes of jobs that wait',
  logBytes: 'Bytes of logs',
  volumeBytes: 'Bytes of volumes',
  imageBytes: 'Bytes of deployed folders',
  workers: 'Workers',
  pods: 'Pods',
  gpus: 'GPUs',
  requests: 'Requests a minute',
  spendPerMonth: 'US dollars a month',
};

function amountOf(name: string, value: number): string {
  if (name.endsWith('Bytes')) return formatBytes(value);
  return name === 'spendPerMonth' ? formatMoney(value) : formatCount(value);
}
