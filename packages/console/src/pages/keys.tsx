import { useState } from 'react';
import type { ReactNode } from 'react';
import { useAllPages } from '../api/all-pages.ts';
import { useWrite } from '../api/queries.ts';
import type { Grant } from '../api/session.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { Command } from '../components/copy.tsx';
import { ConfirmDialog, Dialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { SelectField, TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState, Note } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';
import { useToasts } from '../components/toast.tsx';

interface ApiKey {
  id: string;
  name: string;
  access: 'ALL' | 'READ_ONLY' | 'RESTRICTED';
  scopes: { rest: Grant; graphql: Grant; serverless: Grant };
  endpoints: string[] | null;
  enabled: boolean;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}
interface S3Key {
  accessId: string;
  name: string;
  access: 'ALL' | 'READ_ONLY';
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}
interface Session {
  id: string;
  keyId: string;
  userAgent: string;
  createdAt: string;
  lastUsedAt: string;
  expiresAt: string;
  current: boolean;
}

const API_KEYS = '/v2/account/api-keys';
const S3_KEYS = '/v2/account/s3-keys';
const SESSIONS = '/v2/sessions';

/** Something that opens an account, and how it is taken away. */
interface Revocation {
  path: string;
  title: string;
  lost: string;
  action: string;
}

export default function KeysPage() {
  const { manageKeys } = usePermissions();
  const [doomed, setDoomed] = useState<Revocation>();
  const revoke = useWrite(API_KEYS, S3_KEYS, SESSIONS);
  return (
    <Page
      title="Keys & sessions"
      description="What opens this account: keys for programs, and browsers that are signed in."
    >
      {!manageKeys && (
        <Note>Your key may look at keys, but not make or revoke them: that needs full access.</Note>
      )}
      <ApiKeys canManage={manageKeys} onRevoke={setDoomed} />
      <S3Keys canManage={manageKeys} onRevoke={setDoomed} />
      <Sessions onRevoke={setDoomed} />
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={doomed?.title ?? ''}
        lost={doomed?.lost}
        action={doomed?.action ?? ''}
        onConfirm={() => revoke.mutateAsync({ path: doomed?.path ?? '', method: 'DELETE' })}
      />
    </Page>
  );
}

interface ListProps {
  canManage: boolean;
  onRevoke: (revocation: Revocation) => void;
}

function ApiKeys({ canManage, onRevoke }: ListProps) {
  const keys = useAllPages<ApiKey>(API_KEYS, 'apiKeys');
  const save = useWrite<{ key: string }>(API_KEYS);
  const toasts = useToasts();
  const [creating, setCreating] = useState(false);
  const [disabling, setDisabling] = useState<Pick<ApiKey, 'id' | 'name'>>();
  const setEnabled = (id: string, enabled: boolean): Promise<unknown> =>
    save.mutateAsync({ path: `${API_KEYS}/${id}`, method: 'PATCH', body: { enabled } });
  return (
    <>
      <ResourceList
        label="API keys"
        title="API keys"
        of={keys}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, id }) => `${name} ${id}`}
        headerActions={canManage && <Button onClick={() => setCreating(true)}>New API key</Button>}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Access', cell: (key) => <Access access={key.access} enabled={key.enabled} /> },
          { header: 'Id', cell: ({ id }) => <code>{id}</code> },
          ...timeColumns,
        ]}
        rowActions={
          canManage
            ? ({ id, name, enabled }) => [
                {
                  label: enabled ? 'Disable' : 'Enable',
                  onSelect: () =>
                    enabled
                      ? setDisabling({ id, name })
                      : void setEnabled(id, true).then(
                          () => toasts.done(`${name} works again`),
                          toasts.failed,
                        ),
                },
                {
                  label: 'Revoke',
                  danger: true,
                  onSelect: () =>
                    onRevoke({
                      path: `${API_KEYS}/${id}`,
                      title: `Revoke the key ${name}?`,
                      lost:
                        'Programs that use it are refused at once, and browsers that signed in with it ' +
                        'are signed out. It cannot be brought back.',
                      action: 'Revoke the key',
                    }),
                },
              ]
            : undefined
        }
        empty={<EmptyState title="No API keys" command="npx berth key create --name ci --access read-only" />}
      />
      <ConfirmDialog
        open={disabling !== undefined}
        onClose={() => setDisabling(undefined)}
        title={`Disable the key ${disabling?.name ?? ''}?`}
        lost={
          'Programs that use it are refused at once, and browsers that signed in with it are signed out. ' +
          'The key stays, and works again when it is enabled.'
        }
        action="Disable the key"
        onConfirm={() => setEnabled(disabling?.id ?? '', false)}
      />
      <NewKey
        open={creating}
        onClose={() => setCreating(false)}
        title="New API key"
        levels={[
          ['READ_ONLY', 'reads everything'],
          ['ALL', 'everything'],
          ['SERVERLESS', 'runs jobs and nothing else'],
        ]}
        create={async ({ name, access, expiresAt }) => {
          const body =
            access === 'SERVERLESS'
              ? { name, access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, expiresAt }
              : { name, access, expiresAt };
          const { key } = await save.mutateAsync({ path: API_KEYS, body });
          return [['Key', key]];
        }}
      />
    </>
  );
}

function S3Keys({ canManage, onRevoke }: ListProps) {
  const keys = useAllPages<S3Key>(S3_KEYS, 's3Keys');
  const save = useWrite<{ accessId: string; secret: string }>(S3_KEYS);
  const [creating, setCreating] = useState(false);
  return (
    <>
      <ResourceList
        label="S3 keys"
        title="S3 keys"
        searchParam="s3"
        of={keys}
        rowKey={({ accessId }) => accessId}
        rowName={({ name }) => name}
        searchText={({ name, accessId }) => `${name} ${accessId}`}
        headerActions={canManage && <Button onClick={() => setCreating(true)}>New S3 key</Button>}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Access', cell: ({ access }) => <Access access={access} enabled /> },
          { header: 'Access key id', cell: ({ accessId }) => <code>{accessId}</code> },
          ...timeColumns,
        ]}
        rowActions={
          canManage
            ? ({ accessId, name }) => [
                {
                  label: 'Revoke',
                  danger: true,
                  onSelect: () =>
                    onRevoke({
                      path: `${S3_KEYS}/${accessId}`,
                      title: `Revoke the S3 key ${name}?`,
                      lost: 'S3 clients that use it are refused at once. The files stay.',
                      action: 'Revoke the key',
                    }),
                },
              ]
            : undefined
        }
        empty={<EmptyState title="No S3 keys" command="npx berth key create --s3 --name backup" />}
      />
      <NewKey
        open={creating}
        onClose={() => setCreating(false)}
        title="New S3 key"
        levels={[
          ['READ_ONLY', 'reads all volumes'],
          ['ALL', 'reads and writes all volumes'],
        ]}
        create={async (body) => {
          const { accessId, secret } = await save.mutateAsync({ path: S3_KEYS, body });
          return [
            ['Access key id', accessId],
            ['Secret access key', secret],
          ];
        }}
      />
    </>
  );
}

function Sessions({ onRevoke }: Pick<ListProps, 'onRevoke'>) {
  const sessions = useAllPages<Session>(SESSIONS, 'sessions');
  const { manageKeys } = usePermissions();
  const ownKey = useSession().data?.key.id;
  return (
    <ResourceList
      label="Sessions"
      title="Sessions"
      searchParam="session"
      of={sessions}
      rowKey={({ id }) => id}
      rowName={({ userAgent }) => browserOf(userAgent)}
      searchText={({ userAgent }) => userAgent}
      columns={[
        {
          header: 'Browser',
          cell: ({ userAgent, current }) => (
            <span className="row" title={userAgent}>
              {browserOf(userAgent)} {current && <Badge tone="good">this one</Badge>}
            </span>
          ),
        },
        { header: 'Key', cell: ({ keyId }) => <code>{keyId}</code> },
        { header: 'Signed in', cell: ({ createdAt }) => <Ago at={createdAt} /> },
        { header: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
        { header: 'Ends', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
      ]}
      rowActions={({ id, keyId, current }) =>
        manageKeys || keyId === ownKey
          ? [
              {
                label: 'Sign out',
                danger: true,
                onSelect: () =>
                  onRevoke({
                    path: `${SESSIONS}/${id}`,
                    title: current ? 'Sign this browser out?' : 'Sign that browser out?',
                    lost: 'It has to sign in with a key again. Nothing else changes.',
                    action: 'Sign out',
                  }),
              },
            ]
          : []
      }
      empty={<p className="empty">No browser is signed in.</p>}
    />
  );
}

/** Asks for a new key, and shows it once. */
function NewKey({
  open,
  onClose,
  title,
  levels,
  create,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  levels: readonly (readonly [string, string])[];
  create: (body: { name: string; access: string; expiresAt: string | null }) => Promise<[string, string][]>;
}) {
  const [name, setName] = useState('');
  const [access, setAccess] = useState(levels[0]?.[0] ?? '');
  const [days, setDays] = useState('');
  const [made, setMade] = useState<[string, string][]>();
  const submit = async (): Promise<void> => {
    const expiresAt = days === '' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
    setMade(await create({ name, access, expiresAt }));
    setName('');
  };
  return (
    <>
      <FormDialog open={open} onClose={onClose} title={title} submit="Create" onSubmit={submit}>
        <TextField label="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        <SelectField
          label="May do"
          value={access}
          onChange={(event) => setAccess(event.target.value)}
          options={levels}
        />
        <SelectField
          label="Expires"
          value={days}
          onChange={(event) => setDays(event.target.value)}
          options={[
            ['', 'never'],
            ['1', 'in a day'],
            ['30', 'in 30 days'],
            ['365', 'in a year'],
          ]}
        />
      </FormDialog>
      <Dialog
        open={made !== undefined}
        onClose={() => setMade(undefined)}
        title="Copy it now"
        description="It is shown this once and never again."
      >
        {(made ?? []).map(([label, value]) => (
          <div key={label} className="stack" style={{ gap: 4 }}>
            <strong>{label}</strong>
            <Command>{value}</Command>
          </div>
        ))}
      </Dialog>
    </>
  );
}

interface Dated {
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}

const timeColumns: { header: string; cell: (row: Dated) => ReactNode }[] = [
  { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { header: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
  { header: 'Expires', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
];

function Access({ access, enabled }: { access: string; enabled: boolean }) {
  if (!enabled) return <Badge tone="warn">disabled</Badge>;
  return <Badge tone={access === 'ALL' ? 'info' : 'idle'}>{access.toLowerCase().replace('_', '-')}</Badge>;
}

function browserOf(userAgent: string): string {
  const [, name] = /(Firefox|Edg|OPR|Chrome|Safari|curl)\//.exec(userAgent) ?? [];
  const [, system] = /\(([^;)]+)/.exec(userAgent) ?? [];
  return name === undefined
    ? userAgent.slice(0, 40) || 'unknown'
    : `${name}${system === undefined ? '' : ` on ${system}`}`;
}
