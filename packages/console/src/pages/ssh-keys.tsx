import { useState } from 'react';
import { useApi, useWrite } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { TextArea } from '../components/form.tsx';
import { Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState } from '../components/states.tsx';

const PATH = '/v2/account/ssh-keys';

export default function SshKeysPage() {
  const answer = useApi<{ keys: string[] }>(PATH);
  const { write } = usePermissions();
  const save = useWrite(PATH);
  const [added, setAdded] = useState<string>();
  const [doomed, setDoomed] = useState<string>();
  const keys = answer.data?.keys ?? [];
  const replace = (next: string[]): Promise<unknown> =>
    save.mutateAsync({ path: PATH, method: 'PUT', body: { keys: next } });
  return (
    <Page
      title="SSH keys"
      description="Public keys that pods get at their start, so that you can sign in with SSH."
      actions={
        write && (
          <Button variant="primary" onClick={() => setAdded('')}>
            Add a key
          </Button>
        )
      }
    >
      <ResourceList
        label="SSH keys"
        of={{ ...answer, data: answer.data?.keys } as never}
        rowKey={(key: string) => key}
        rowName={commentOf}
        searchText={(key) => key}
        columns={[
          { header: 'Comment', cell: (key) => commentOf(key) },
          { header: 'Type', cell: (key) => <code>{key.split(/\s+/)[0]}</code> },
          { header: 'Key', cell: (key) => <code>…{key.split(/\s+/)[1]?.slice(-24)}</code> },
        ]}
        rowActions={
          write ? (key) => [{ label: 'Remove', danger: true, onSelect: () => setDoomed(key) }] : undefined
        }
        empty={
          <EmptyState title="No SSH keys yet" command="ssh-keygen -t ed25519 && cat ~/.ssh/id_ed25519.pub">
            Make a key on your machine if you have none, and paste its public half here.
          </EmptyState>
        }
      />
      <FormDialog
        open={added !== undefined}
        onClose={() => setAdded(undefined)}
        title="Add SSH keys"
        description={
          'The content of a .pub file, one key in each line. Pods that run get it at their next start.'
        }
        submit="Add"
        onSubmit={() => replace([...keys, ...linesOf(added ?? '')])}
      >
        <TextArea
          label="Public key"
          required
          placeholder="ssh-ed25519 AAAA… me@laptop"
          value={added ?? ''}
          onChange={(event) => setAdded(event.target.value)}
        />
      </FormDialog>
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Remove the key ${doomed === undefined ? '' : commentOf(doomed)}?`}
        lost="Pods that start later do not let it in. Those that run keep it until their next start."
        action="Remove the key"
        onConfirm={() => replace(keys.filter((key) => key !== doomed))}
      />
    </Page>
  );
}

function linesOf(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(Boolean);
}

function commentOf(key: string): string {
  return key.split(/\s+/).slice(2).join(' ') || 'without a comment';
}
