import { useState } from 'react';
import { useAllPages } from '../api/all-pages.ts';
import { useWrite } from '../api/queries.ts';
import type { Template } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Button, LinkButton } from '../components/button.tsx';
import {
  containerBody,
  containerDraft,
  containerProblems,
  EMPTY_CONTAINER,
} from '../components/container-draft.ts';
import { ContainerFields } from '../components/container-fields.tsx';
import type { ContainerDraft } from '../components/container-draft.ts';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { CheckField, TextField } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';

const PATH = '/v2/templates';

interface Draft extends ContainerDraft {
  id?: string;
  name: string;
  serverless: boolean;
}

const EMPTY: Draft = { ...EMPTY_CONTAINER, name: '', serverless: false };

export default function TemplatesPage() {
  const templates = useAllPages<Template>(PATH, 'templates', {});
  const { write } = usePermissions();
  const save = useWrite(PATH);
  const [draft, setDraft] = useState<Draft>();
  const [doomed, setDoomed] = useState<Template>();
  const submit = async (): Promise<void> => {
    if (draft === undefined) return;
    const problems = containerProblems(draft);
    if (problems.length > 0) throw new Error(problems.join('; '));
    const { id, name, serverless } = draft;
    await save.mutateAsync({
      path: id === undefined ? PATH : `${PATH}/${id}`,
      method: id === undefined ? 'POST' : 'PATCH',
      body: { name, serverless, ...containerBody(draft) },
    });
  };
  return (
    <Page
      title="Templates"
      description="Container settings that pods and endpoints start from."
      actions={
        write && (
          <Button variant="primary" onClick={() => setDraft(EMPTY)}>
            New template
          </Button>
        )
      }
    >
      <ResourceList
        label="Templates"
        of={templates}
        rowKey={({ id }) => id}
        rowName={({ name }) => name}
        searchText={({ name, image }) => `${name} ${image}`}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Image', cell: ({ image }) => <span className="mono">{image}</span> },
          { header: 'For', cell: ({ serverless }) => <Badge>{serverless ? 'endpoints' : 'pods'}</Badge> },
          { header: 'Ports', cell: ({ ports }) => <span className="mono">{ports.join(', ')}</span> },
          {
            header: 'Use',
            cell: ({ id, serverless }) =>
              write && !serverless ? (
                <LinkButton small to="/pods/new" search={{ template: id }}>
                  Deploy
                </LinkButton>
              ) : null,
          },
        ]}
        rowActions={
          write
            ? (template) => [
                {
                  label: 'Edit',
                  onSelect: () =>
                    setDraft({
                      ...containerDraft(template),
                      id: template.id,
                      name: template.name,
                      serverless: template.serverless,
                    }),
                },
                { label: 'Delete', danger: true, onSelect: () => setDoomed(template) },
              ]
            : undefined
        }
        empty={
          <EmptyState
            title="No templates yet"
            command="npx berth template create --set name=shell --set image=local/shell"
          >
            Write an image with its ports and variables down once, and deploy it with two clicks.
          </EmptyState>
        }
      />
      <FormDialog
        open={draft !== undefined}
        onClose={() => setDraft(undefined)}
        title={draft?.id === undefined ? 'New template' : `Edit ${draft.name}`}
        {...(draft?.id !== undefined && {
          description:
            'Endpoints that are linked to it get a new release. Pods keep what they were made with.',
        })}
        submit={draft?.id === undefined ? 'Create' : 'Save'}
        shape="wide"
        onSubmit={submit}
      >
        {draft !== undefined && (
          <>
            <TextField
              label="Name"
              required
              value={draft.name}
              onChange={(event) => setDraft({ ...draft, name: event.target.value })}
            />
            <ContainerFields draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
            <CheckField
              label="For endpoints rather than pods"
              checked={draft.serverless}
              onChange={(event) => setDraft({ ...draft, serverless: event.target.checked })}
            />
          </>
        )}
      </FormDialog>
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Delete the template ${doomed?.name ?? ''}?`}
        lost={
          'The settings are lost. Pods and endpoints that were made from it go on; one that an endpoint ' +
          'is linked to is not deleted.'
        }
        action="Delete the template"
        onConfirm={() => save.mutateAsync({ path: `${PATH}/${doomed?.id ?? ''}`, method: 'DELETE' })}
      />
    </Page>
  );
}
