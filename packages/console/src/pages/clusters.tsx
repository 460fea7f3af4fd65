import { useState } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useAllPages } from '../api/all-pages.ts';
import { useApi, useWrite } from '../api/queries.ts';
import type { Cluster, GpuType } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { containerBody, EMPTY_CONTAINER } from '../components/container-draft.ts';
import { ContainerFields } from '../components/container-fields.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { SelectField, TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';

const PATH = '/v2/clusters';

export default function ClustersPage() {
  const clusters = useAllPages<Cluster>(PATH, 'clusters', { everyMs: 15_000 });
  const { write } = usePermissions();
  const remove = useWrite(PATH, '/v2/pods');
  const [creating, setCreating] = useState(false);
  const [doomed, setDoomed] = useState<Cluster>();
  return (
    <Page
      title="Clusters"
      description="Several pods with one network, for work that one machine cannot do."
      actions={
        write && (
          <Button variant="primary" onClick={() => setCreating(true)}>
            New cluster
          </Button>
        )
      }
    >
      <ResourceList
        label="Clusters"
        of={clusters}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, id, type }) => `${name} ${id} ${type}`}
        columns={[
          { header: 'Name', cell: ({ id, name }) => <Link to={`/clusters/${id}`}>{name}</Link> },
          { header: 'Type', cell: ({ type }) => <Badge>{type.toLowerCase()}</Badge> },
          {
            header: 'Pods',
            cell: ({ compute }) => `${compute.podCount} × ${compute.gpuCountPerPod} ${compute.gpuTypeId}`,
          },
          {
            header: 'State',
            cell: ({ pods }) =>
              Object.entries(pods.byStatus)
                .map(([status, count]) => `${count} ${status.toLowerCase()}`)
                .join(', '),
          },
          { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
        ]}
        rowActions={
          write
            ? (cluster) => [{ label: 'Delete', danger: true, onSelect: () => setDoomed(cluster) }]
            : undefined
        }
        empty={
          <EmptyState
            title="No clusters yet"
            command={
              'npx berth cluster create --set name=train --set type=APPLICATION \\\n' +
              '  --set image=local/shell --set "compute.gpuTypeId=NVIDIA A40" \\\n' +
              '  --set compute.gpuCountPerPod=1 --set compute.podCount=2'
            }
          >
            For training on the GPUs of several machines.
          </EmptyState>
        }
      />
      <NewCluster open={creating} onClose={() => setCreating(false)} />
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Delete the cluster ${doomed?.name ?? ''}?`}
        lost={
          `Its ${doomed?.pods.total ?? 0} pods with their disks, and their network, are deleted. ` +
          'Network volumes stay.'
        }
        action="Delete the cluster"
        {...(doomed !== undefined && { word: doomed.name })}
        onConfirm={() => remove.mutateAsync({ path: `${PATH}/${doomed?.id ?? ''}`, method: 'DELETE' })}
      />
    </Page>
  );
}

const EMPTY = {
  ...EMPTY_CONTAINER,
  image: 'local/shell',
  args: 'sleep 86400',
  name: '',
  type: 'APPLICATION',
  gpu: '',
  gpus: '1',
  pods: '2',
};

function NewCluster({ open, onClose }: { open: boolean; onClose: () => void }) {
  const gpus = useApi<{ gpus: GpuType[] }>('/v2/catalog/gpus', {
    query: { include: 'AVAILABILITY', product: 'CLUSTER' },
    enabled: open,
  });
  const create = useWrite<Cluster>(PATH);
  const navigate = useNavigate();
  const [draft, setDraft] = useState(EMPTY);
  const known = (gpus.data?.gpus ?? []).filter(({ maxCount }) => maxCount.secure > 0);
  const gpuTypeId = draft.gpu || (known[0]?.id ?? '');
  const submit = async (): Promise<void> => {
    const { registry: _, ...container } = containerBody(draft);
    const { id } = await create.mutateAsync({
      path: PATH,
      body: {
        name: draft.name,
        type: draft.type,
        ...container,
        compute: { gpuTypeId, gpuCountPerPod: Number(draft.gpus), podCount: Number(draft.pods) },
      },
    });
    await navigate({ to: `/clusters/${id}` });
  };
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title="New cluster"
      submit="Create"
      shape="wide"
      onSubmit={submit}
    >
      <div className="grid">
        <TextField
          label="Name"
          required
          value={draft.name}
          onChange={(event) => setDraft({ ...draft, name: event.target.value })}
        />
        <SelectField
          label="Type"
          value={draft.type}
          onChange={(event) => setDraft({ ...draft, type: event.target.value })}
          options={[
            ['APPLICATION', 'application'],
            ['TRAINING', 'training'],
            ['SLURM', 'Slurm'],
            ['RAY', 'Ray'],
          ]}
        />
        <SelectField
          label="GPU"
          value={gpuTypeId}
          onChange={(event) => setDraft({ ...draft, gpu: event.target.value })}
          options={known.map(({ id, name }) => [id, name] as const)}
        />
        <TextField
          label="GPUs of each pod"
          type="number"
          min={1}
          value={draft.gpus}
          onChange={(event) => setDraft({ ...draft, gpus: event.target.value })}
        />
        <TextField
          label="Pods"
          type="number"
          min={2}
          value={draft.pods}
          onChange={(event) => setDraft({ ...draft, pods: event.target.value })}
        />
      </div>
      <ContainerFields
        draft={draft}
        withRegistry={false}
        onChange={(change) => setDraft({ ...draft, ...change })}
      />
    </FormDialog>
  );
}
