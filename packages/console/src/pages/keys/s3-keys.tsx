import { useState } from 'react';
import { useAllPages } from '../../api/all-pages.ts';
import { useWrite } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ResourceList } from '../../components/resource-list.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Access, timeColumns } from './key-columns.tsx';
import { NewKey } from './new-key.tsx';
import { S3_KEYS } from './revocation.ts';
import type { KeyListProps } from './revocation.ts';

interface S3Key {
  accessId: string;
  name: string;
  access: 'ALL' | 'READ_ONLY';
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}
export function S3Keys({ canManage, onRevoke }: KeyListProps) {
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
        empty={
          <EmptyState title="No S3 keys" command="npx berth key create --s3 --name backup">
            With one, S3 clients such as aws and rclone read and write the files of network volumes.
          </EmptyState>
        }
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
