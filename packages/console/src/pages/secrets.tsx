import { useState } from 'react';
import { useAllPages } from '../api/all-pages.ts';
import { useWrite } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { CopyButton } from '../components/copy.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { TextArea, TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';

interface Secret {
  id: string;
  name: string;
  description: string | null;
  createdAt: string;
  valueLastUpdatedAt: string | null;
}

const PATH = '/v2/account/secrets';
const EMPTY = { name: '', value: '', description: '' };

export default function SecretsPage() {
  const secrets = useAllPages<Secret>(PATH, 'secrets', {});
  const { write } = usePermissions();
  const save = useWrite(PATH);
  const [draft, setDraft] = useState<typeof EMPTY & { id?: string }>();
  const [doomed, setDoomed] = useState<Secret>();
  const submit = async (): Promise<void> => {
    if (draft === undefined) return;
    const { id, name, value, description } = draft;
    await save.mutateAsync(
      id === undefined
        ? { path: PATH, body: { name, value, ...(description !== '' && { description }) } }
        : { path: `${PATH}/${id}`, method: 'PATCH', body: { value } },
    );
  };
  return (
    <Page
      title="Secrets"
      description={
        'Values that environments refer to by name. A value is stored encrypted and never shown again.'
      }
      actions={
        write && (
          <Button variant="primary" onClick={() => setDraft(EMPTY)}>
            New secret
          </Button>
        )
      }
    >
      <ResourceList
        label="Secrets"
        of={secrets}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, description }) => `${name} ${description ?? ''}`}
        columns={[
          { header: 'Name', cell: ({ name }) => <span className="mono">{name}</span> },
          {
            header: 'Description',
            cell: ({ description }) => description ?? <span className="muted">none</span>,
          },
          {
            header: 'In an environment',
            cell: ({ name }) => (
              <span className="row">
                <code>{reference(name)}</code>
                <CopyButton text={reference(name)} label={`Copy the reference to ${name}`} />
              </span>
            ),
          },
          {
            header: 'Value set',
            cell: ({ valueLastUpdatedAt, createdAt }) => <Ago at={valueLastUpdatedAt ?? createdAt} />,
          },
        ]}
        rowActions={
          write
            ? (secret) => [
                {
                  label: 'Set a new value',
                  onSelect: () => setDraft({ ...EMPTY, id: secret.id, name: secret.name }),
                },
                { label: 'Delete', danger: true, onSelect: () => setDoomed(secret) },
              ]
            : undefined
        }
        empty={
          <EmptyState
            title="No secrets yet"
            command={
              'curl -H "Authorization: Bearer $BERTH_API_KEY" -H "Content-Type: application/json" \\\n ' +
              ' -d \'{"name": "HF_TOKEN", "value": "…"}\' $BERTH_URL/v2/account/secrets'
            }
          >
            Keep tokens and passwords out of templates: store them here and write {reference('NAME')} where
            they are needed.
          </EmptyState>
        }
      />
      <FormDialog
        open={draft !== undefined}
        onClose={() => setDraft(undefined)}
        title={draft?.id === undefined ? 'New secret' : `New value of ${draft.name}`}
        description="Containers that start later see it; those that run keep the old one."
        submit={draft?.id === undefined ? 'Create' : 'Replace the value'}
        onSubmit={submit}
      >
        {draft !== undefined && (
          <>
            {draft.id === undefined && (
              <TextField
                label="Name"
                className="input mono"
                required
                value={draft.name}
                onChange={(event) => setDraft({ ...draft, name: event.target.value })}
              />
            )}
            <TextArea
              label="Value"
              required
              value={draft.value}
              onChange={(event) => setDraft({ ...draft, value: event.target.value })}
            />
            {draft.id === undefined && (
              <TextField
                label="Description"
                value={draft.description}
                onChange={(event) => setDraft({ ...draft, description: event.target.value })}
              />
            )}
          </>
        )}
      </FormDialog>
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Delete the secret ${doomed?.name ?? ''}?`}
        lost={
          'Its value is lost and cannot be read back. Containers that run keep it; those that start later ' +
          'and refer to it do not start.'
        }
        action="Delete the secret"
        onConfirm={() => save.mutateAsync({ path: `${PATH}/${doomed?.id ?? ''}`, method: 'DELETE' })}
      />
    </Page>
  );
}

function reference(name: string): string {
  return `{{ RUNPOD_SECRET_${name} }}`;
}
