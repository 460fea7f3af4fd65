import { useState } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useAllPages } from '../api/all-pages.ts';
import { useApi, useWrite } from '../api/queries.ts';
import type { DataCenter, NetworkVolume } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { SelectField, TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';
import { VolumeDialogs, VolumeUsage } from './volume-dialogs.tsx';
import type { VolumeChange } from './volume-dialogs.tsx';

const PATH = '/v2/network-volumes';

export default function StoragePage() {
  const volumes = useAllPages<NetworkVolume>(PATH, 'networkVolumes', { everyMs: 30_000 });
  const { write } = usePermissions();
  const [creating, setCreating] = useState(false);
  const [change, setChange] = useState<VolumeChange>();
  return (
    <Page
      title="Storage"
      description={
        'Network volumes outlive what mounts them. Pods, endpoints and S3 clients share their files.'
      }
      actions={
        write && (
          <Button variant="primary" onClick={() => setCreating(true)}>
            New volume
          </Button>
        )
      }
    >
      <ResourceList
        label="Network volumes"
        of={volumes}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, id, dataCenter }) => `${name} ${id} ${dataCenter}`}
        columns={[
          { header: 'Name', cell: ({ id, name }) => <Link to={`/storage/${id}`}>{name}</Link> },
          { header: 'Id', cell: ({ id }) => <code>{id}</code> },
          { header: 'Data center', cell: ({ dataCenter }) => dataCenter },
          { header: 'Used', cell: (volume) => <VolumeUsage volume={volume} /> },
        ]}
        rowActions={
          write
            ? (volume) => [
                { label: 'Rename or grow', onSelect: () => setChange({ kind: 'update', volume }) },
                { label: 'Delete', danger: true, onSelect: () => setChange({ kind: 'delete', volume }) },
              ]
            : undefined
        }
        empty={
          <EmptyState title="No network volumes yet" command="npx berth volume create models --size 50">
            Keep models and results on a volume: it stays when pods and workers go.
          </EmptyState>
        }
      />
      <NewVolume open={creating} onClose={() => setCreating(false)} />
      <VolumeDialogs change={change} onClose={() => setChange(undefined)} />
    </Page>
  );
}

function NewVolume({ open, onClose }: { open: boolean; onClose: () => void }) {
  const places = useApi<{ dataCenters: DataCenter[] }>('/v2/catalog/datacenters', { enabled: open });
  const save = useWrite<NetworkVolume>(PATH);
  const navigate = useNavigate();
  const [draft, setDraft] = useState({ name: '', size: '20', dataCenter: '' });
  const known = places.data?.dataCenters ?? [];
  const dataCenter = draft.dataCenter || (known[0]?.id ?? '');
  const submit = async (): Promise<void> => {
    const { id } = await save.mutateAsync({
      path: PATH,
      body: { name: draft.name, size: Number(draft.size), dataCenter },
    });
    await navigate({ to: `/storage/${id}` });
  };
  return (
    <FormDialog open={open} onClose={onClose} title="New volume" submit="Create" onSubmit={submit}>
      <TextField
        label="Name"
        required
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.target.value })}
      />
      <TextField
        label="Size, GB"
        type="number"
        min={10}
        required
        value={draft.size}
        hint="It can grow later, and never shrinks"
        onChange={(event) => setDraft({ ...draft, size: event.target.value })}
      />
      <SelectField
        label="Data center"
        value={dataCenter}
        hint="What mounts it runs there too"
        onChange={(event) => setDraft({ ...draft, dataCenter: event.target.value })}
        options={known.map(({ id, name }) => [id, `${id} · ${name}`] as const)}
      />
    </FormDialog>
  );
}
