import { useAllPages } from '../../api/all-pages.ts';
import { usePermissions, useSession } from '../../api/session.ts';
import { Badge } from '../../components/badge.tsx';
import { ResourceList } from '../../components/resource-list.tsx';
import { Ago } from '../../components/time.tsx';
import { SESSIONS } from './revocation.ts';
import type { KeyListProps } from './revocation.ts';

interface Session {
  id: string;
  keyId: string;
  userAgent: string;
  createdAt: string;
  lastUsedAt: string;
  expiresAt: string;
  current: boolean;
}

/** Browsers that are signed in. */
export function Sessions({ onRevoke }: Pick<KeyListProps, 'onRevoke'>) {
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

function browserOf(userAgent: string): string {
  const [, name] = /(Firefox|Edg|OPR|Chrome|Safari|curl)\//.exec(userAgent) ?? [];
  const [, system] = /\(([^;)]+)/.exec(userAgent) ?? [];
  return name === undefined
    ? userAgent.slice(0, 40) || 'unknown'
    : `${name}${system === undefined ? '' : ` on ${system}`}`;
}
