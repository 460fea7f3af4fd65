import type { ReactNode } from 'react';
import { Badge } from '../../components/badge.tsx';
import { Ago } from '../../components/time.tsx';

interface Dated {
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
}

export const timeColumns: { header: string; cell: (row: Dated) => ReactNode }[] = [
  { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { header: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
  { header: 'Expires', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
];

export function Access({ access, enabled }: { access: string; enabled: boolean }) {
  if (!enabled) return <Badge tone="warn">disabled</Badge>;
  return <Badge tone={access === 'ALL' ? 'info' : 'idle'}>{access.toLowerCase().replace('_', '-')}</Badge>;
}
