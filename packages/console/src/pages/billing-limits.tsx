import { useState } from 'react';
import { useApi, useWrite } from '../api/queries.ts';
import type { Account, AccountLimits } from '../api/resources.ts';
import { Badge } from '../components/badge.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { SelectField, TextField } from '../components/form.tsx';
import { formatBytes, formatCount, formatMoney } from '../components/format.ts';
import { Card } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { Loaded } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { useAllPages } from '../api/all-pages.ts';
import { amountText, isHours, LIMIT_WORDS, parseAmount } from './limit-words.ts';

export function Limits() {
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
              {
                header: 'Used',
                kind: 'number',
                cell: ({ name, used, estimated }) =>
                  isHours(name) ? '' : `${estimated === true ? 'about ' : ''}${amountOf(name, used)}`,
              },
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
export function OtherAccounts() {
  const accounts = useAllPages<Account>('/v2/accounts', 'accounts');
  const [edited, setEdited] = useState<Account>();
  return (
    <>
      <ResourceList
        label="Accounts"
        title="Accounts"
        of={accounts}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, id }) => `${name} ${id}`}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Id', cell: ({ id }) => <code>{id}</code> },
          {
            header: 'Status',
            cell: ({ status }) => <Badge tone={status === 'active' ? 'good' : 'warn'}>{status}</Badge>,
          },
        ]}
        rowActions={(account) => [{ label: 'Set a limit', onSelect: () => setEdited(account) }]}
        empty={null}
      />
      {edited !== undefined && <SetLimit account={edited} onClose={() => setEdited(undefined)} />}
    </>
  );
}

function SetLimit({ account, onClose }: { account: Account; onClose: () => void }) {
  const path = `/v2/accounts/${account.id}/limits`;
  const limits = useApi<AccountLimits>(path);
  const save = useWrite('/v2/accounts', '/v2/account/limits');
  const [name, setName] = useState('pods');
  const [typed, setTyped] = useState<string>();
  const present = limits.data?.limits.find((each) => each.name === name);
  const text = typed ?? amountText(name, present?.limit ?? null);
  const amount = parseAmount(name, text);
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`A limit of ${account.name}`}
      description="Empty removes the limit, so that the one of the configuration applies."
      submit="Set"
      onSubmit={async () => {
        if (amount === undefined && text !== '') throw new Error(`${text} is no ${amountHint(name)}`);
        await save.mutateAsync({ path, method: 'PATCH', body: { [name]: text === '' ? null : amount } });
      }}
    >
      <SelectField
        label="Limit"
        value={name}
        onChange={({ target }) => {
          setName(target.value);
          setTyped(undefined);
        }}
        options={Object.entries(LIMIT_WORDS)}
      />
      <TextField
        label="At most"
        value={text}
        hint={
          present === undefined || isHours(name)
            ? `A ${amountHint(name)}`
            : `A ${amountHint(name)}; ${amountOf(name, present.used)} used now`
        }
        onChange={({ target }) => setTyped(target.value)}
      />
    </FormDialog>
  );
}

function amountHint(name: string): string {
  if (name.endsWith('Bytes')) return 'size such as 500 MB';
  return name === 'spendPerMonth' ? 'sum in US dollars' : 'number';
}

function amountOf(name: string, value: number): string {
  if (name.endsWith('Bytes')) return formatBytes(value);
  return name === 'spendPerMonth' ? formatMoney(value) : formatCount(value);
}
