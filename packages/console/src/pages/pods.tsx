import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useAllPages } from '../api/all-pages.ts';
import type { Pod, PodAction } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { StatusBadge } from '../components/badge.tsx';
import { LinkButton } from '../components/button.tsx';
import { SelectField } from '../components/form.tsx';
import { formatMoney } from '../components/format.ts';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';
import { useUrlState } from '../components/url-state.ts';
import { hardwareOf, POD_STATUSES } from './pods/pod-words.ts';
import { PodActionDialog, podActionEntries } from './pods/pod-actions.tsx';

export default function PodsPage() {
  const pods = useAllPages<Pod>('/v2/pods', 'pods', { everyMs: 30_000 });
  const { write } = usePermissions();
  const [status, setStatus] = useUrlState('status');
  const [asked, setAsked] = useState<{ pod: Pod; action: PodAction }>();
  const shown = status === '' ? pods : { ...pods, data: pods.data?.filter((pod) => pod.status === status) };
  return (
    <Page
      title="Pods"
      description="Machines that run until you stop them."
      actions={
        write && (
          <LinkButton to="/pods/new" variant="primary">
            Deploy a pod
          </LinkButton>
        )
      }
    >
      <ResourceList
        label="Pods"
        of={shown as typeof pods}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={(pod) =>
          `${pod.name} ${pod.id} ${pod.image} ${hardwareOf(pod)} ${pod.dataCenterId ?? ''}`
        }
        filters={
          (pods.data?.length ?? 0) > 0 ? (
            <SelectField
              label="Status"
              value={status}
              onChange={(event) => setStatus(event.target.value)}
              options={[['', 'any'], ...POD_STATUSES.map((name) => [name, name.toLowerCase()] as const)]}
            />
          ) : undefined
        }
        columns={[
          { header: 'Name', cell: ({ id, name }) => <Link to={`/pods/${id}`}>{name}</Link> },
          {
            header: 'Status',
            cell: ({ status: word, statusDetail }) => (
              <span title={statusDetail ?? undefined}>
                <StatusBadge status={word} />
              </span>
            ),
          },
          { header: 'Hardware', cell: (pod) => hardwareOf(pod) },
          { header: 'Image', cell: ({ image }) => <span className="mono">{image}</span> },
          { header: 'Data center', cell: ({ dataCenterId }) => dataCenterId },
          { header: 'Per hour', kind: 'number', cell: ({ cost }) => formatMoney(cost) },
          { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
        ]}
        rowActions={write ? (pod) => podActionEntries(pod, (action) => setAsked({ pod, action })) : undefined}
        empty={
          <EmptyState
            title={status === '' ? 'No pods yet' : `No pod is ${status.toLowerCase()}`}
            command="npx berth pod create --name shell local/shell sleep 3600"
          >
            A pod is a machine of your own: with a terminal, ports and disks.
          </EmptyState>
        }
      />
      <PodActionDialog asked={asked} onClose={() => setAsked(undefined)} />
    </Page>
  );
}
