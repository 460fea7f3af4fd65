import { Link } from '@tanstack/react-router';
import { usePermissions } from '../api/session.ts';
import { Icon } from './icons.tsx';
import type { IconName } from './icons.tsx';

interface Entry {
  to: string;
  label: string;
  icon: IconName;
  operator?: boolean;
}

const GROUPS: { title: string; entries: Entry[] }[] = [
  {
    title: 'Run',
    entries: [
      { to: '/', label: 'Overview', icon: 'overview' },
      { to: '/serverless', label: 'Serverless', icon: 'serverless' },
      { to: '/pods', label: 'Pods', icon: 'pods' },
      { to: '/clusters', label: 'Clusters', icon: 'clusters' },
    ],
  },
  {
    title: 'Keep',
    entries: [
      { to: '/storage', label: 'Storage', icon: 'storage' },
      { to: '/templates', label: 'Templates', icon: 'templates' },
      { to: '/registries', label: 'Registries', icon: 'registries' },
      { to: '/secrets', label: 'Secrets', icon: 'secrets' },
      { to: '/ssh-keys', label: 'SSH keys', icon: 'sshkeys' },
    ],
  },
  {
    title: 'Account',
    entries: [
      { to: '/billing', label: 'Billing', icon: 'billing' },
      { to: '/keys', label: 'Keys & sessions', icon: 'keys' },
      { to: '/audit', label: 'Audit log', icon: 'audit' },
      { to: '/system', label: 'System', icon: 'system', operator: true },
    ],
  },
];

export function Navigation({ onNavigate }: { onNavigate: () => void }) {
  const { operator } = usePermissions();
  return (
    <nav aria-label="Main">
      {GROUPS.map(({ title, entries }) => (
        <div key={title}>
          <div className="nav-group">{title}</div>
          {entries
            .filter((entry) => entry.operator !== true || operator)
            .map(({ to, label, icon }) => (
              <Link
                key={to}
                to={to}
                className="nav-link"
                activeOptions={{ exact: to === '/' }}
                onClick={onNavigate}
              >
                <Icon name={icon} />
                {label}
              </Link>
            ))}
        </div>
      ))}
    </nav>
  );
}
