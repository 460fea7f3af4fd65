import { useState } from 'react';
import { useAllPages } from '../../api/all-pages.ts';
import { useWrite } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { ResourceList } from '../../components/resource-list.tsx';
import { EmptyState } from '../../components/states.tsx';
import { useToasts } from '../../components/toast.tsx';
import { EndpointChoice } from './endpoint-choice.tsx';
import { Access, timeColumns } from './key-columns.tsx';
import { scopeWords } from './key-words.ts';
import type { KeyScopes } from './key-words.ts';
import { NewKey } from './new-key.tsx';
import { API_KEYS } from './revocation.ts';
import type { KeyListProps } from './revocation.ts';

interface ApiKey extends KeyScopes {
  id: string;
  name: string;
  enabled: boolean;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}
export function ApiKeys({ canManage, onRevoke }: KeyListProps) {
  const keys = useAllPages<ApiKey>(API_KEYS, 'apiKeys');
  const save = useWrite<{ key: string }>(API_KEYS);
  const toasts = useToasts();
  const [creating, setCreating] = useState(false);
  const [endpoints, setEndpoints] = useState<string[]>([]);
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
          {
            header: 'Access',
            cell: (key) => (
              <>
                <Access access={key.access} enabled={key.enabled} />
                {key.access === 'RESTRICTED' && (
                  <div className="muted" title={key.endpoints?.join(', ')}>
                    {scopeWords(key)}
                  </div>
                )}
              </>
            ),
          },
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
          ['SERVERLESS', 'calls endpoints and nothing else'],
        ]}
        create={async ({ name, access, expiresAt }) => {
          const body =
            access === 'SERVERLESS'
              ? {
                  name,
                  access: 'RESTRICTED',
                  scopes: { serverless: 'WRITE' },
                  endpoints: endpoints.length === 0 ? null : endpoints,
                  expiresAt,
                }
              : { name, access, expiresAt };
          const { key } = await save.mutateAsync({ path: API_KEYS, body });
          setEndpoints([]);
          return [['Key', key]];
        }}
      >
        {(access) => access === 'SERVERLESS' && <EndpointChoice chosen={endpoints} onChange={setEndpoints} />}
      </NewKey>
    </>
  );
}
