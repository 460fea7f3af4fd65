import { useState } from 'react';
import { useAllPages } from '../api/all-pages.ts';
import { useWrite } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';

interface Registry {
  id: string;
  name: string;
}
interface Delegation {
  id: string;
  name: string | null;
  dockerRegistryUri: string;
  repository: string;
  tag: string;
  createdAt: string;
}

const PATH = '/v2/registries';
const EMPTY = { name: '', username: '', password: '' };

export default function RegistriesPage() {
  const registries = useAllPages<Registry>(PATH, 'registries', {});
  const delegations = useAllPages<Delegation>(`${PATH}/delegations`, 'delegations', {});
  const { write } = usePermissions();
  const save = useWrite(PATH);
  const [draft, setDraft] = useState<typeof EMPTY>();
  const [doomed, setDoomed] = useState<{ path: string; name: string }>();
  const change = (field: keyof typeof EMPTY) => (event: { target: { value: string } }) =>
    draft !== undefined && setDraft({ ...draft, [field]: event.target.value });
  return (
    <Page
      title="Registries"
      description="Credentials for private images. They are stored encrypted and never shown."
      actions={
        write && (
          <Button variant="primary" onClick={() => setDraft(EMPTY)}>
            New registry
          </Button>
        )
      }
    >
      <ResourceList
        label="Registries"
        of={registries}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, id }) => `${name} ${id}`}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Id', cell: ({ id }) => <code>{id}</code> },
        ]}
        rowActions={
          write
            ? ({ id, name }) => [
                { label: 'Delete', danger: true, onSelect: () => setDoomed({ path: `${PATH}/${id}`, name }) },
              ]
            : undefined
        }
        empty={
          <EmptyState
            title="No registries yet"
            command={
              'curl -H "Authorization: Bearer $BERTH_API_KEY" -H "Content-Type: application/json" \\\n ' +
              ' -d \'{"name": "ghcr", "username": "me", "password": "…"}\' $BERTH_URL/v2/registries'
            }
          >
            Public images need none. For a private one, save its user name and password here and choose it in
            the template, pod or endpoint.
          </EmptyState>
        }
      />
      {(delegations.data?.length ?? 0) > 0 && (
        <ResourceList
          label="ECR delegations"
          title="ECR delegations"
          searchParam="delegation"
          of={delegations}
          rowKey={({ id }) => id}
          rowName={({ name, id }) => name ?? id}
          searchText={({ name, repository }) => `${name ?? ''} ${repository}`}
          columns={[
            { header: 'Repository', cell: (row) => <code>{row.dockerRegistryUri}</code> },
            { header: 'Recorded', cell: ({ createdAt }) => <Ago at={createdAt} /> },
          ]}
          rowActions={
            write
              ? ({ id, name }) => [
                  {
                    label: 'Delete',
                    danger: true,
                    onSelect: () => setDoomed({ path: `${PATH}/delegations/${id}`, name: name ?? id }),
                  },
                ]
              : undefined
          }
          empty={null}
        />
      )}
      <FormDialog
        open={draft !== undefined}
        onClose={() => setDraft(undefined)}
        title="New registry"
        submit="Save"
        onSubmit={() => save.mutateAsync({ path: PATH, body: draft })}
      >
        <TextField label="Name" required value={draft?.name ?? ''} onChange={change('name')} />
        <TextField label="User name" required value={draft?.username ?? ''} onChange={change('username')} />
        <TextField
          label="Password or token"
          type="password"
          required
          value={draft?.password ?? ''}
          onChange={change('password')}
        />
      </FormDialog>
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Delete ${doomed?.name ?? ''}?`}
        lost={
          'The saved credentials are lost. What runs goes on; a private image that needs them cannot be ' +
          'fetched any more.'
        }
        action="Delete the registry"
        onConfirm={() => save.mutateAsync({ path: doomed?.path ?? '', method: 'DELETE' })}
      />
    </Page>
  );
}
