import { useWrite } from '../../api/queries.ts';
import type { Pod } from '../../api/resources.ts';
import { usePermissions } from '../../api/session.ts';
import { containerBody, containerDraft, containerProblems } from '../../components/container-draft.ts';
import { ContainerFields } from '../../components/container-fields.tsx';
import { ConflictNote } from '../../components/conflict-note.tsx';
import { useDraft } from '../../components/draft.ts';
import { SubmitForm } from '../../components/form-dialog.tsx';
import { CheckField, TextField } from '../../components/form.tsx';
import { Card, Facts } from '../../components/page.tsx';
import { Note } from '../../components/states.tsx';
import { useToasts } from '../../components/toast.tsx';
import { formatEnv } from '../../components/env-text.ts';

export function PodSettings({ pod }: { pod: Pod }) {
  const { write } = usePermissions();
  if (!write || pod.cluster !== undefined)
    return (
      <Card>
        <Facts
          facts={[
            ['Image', <code>{pod.image}</code>],
            ['Command', <code>{pod.args}</code>],
            ['Ports', pod.ports.join(', ')],
            ['Variables', <pre>{formatEnv(pod.env)}</pre>],
          ]}
        />
      </Card>
    );
  return <EditPod key={pod.id} pod={pod} />;
}

function EditPod({ pod }: { pod: Pod }) {
  const save = useWrite('/v2/pods');
  const toasts = useToasts();
  const current = { ...containerDraft(pod), name: pod.name, locked: pod.locked };
  const { draft, conflicts, change, reset } = useDraft(current);
  const changed = changedFields(pod, draft);
  const restarts = pod.status === 'RUNNING' && Object.keys(changed).some((name) => RESTARTING.includes(name));
  return (
    <Card>
      <SubmitForm
        submit={restarts ? 'Save and restart' : 'Save'}
        disabled={Object.keys(changed).length === 0 || containerProblems(draft).length > 0}
        onSubmit={() => save.mutateAsync({ path: `/v2/pods/${pod.id}`, method: 'PATCH', body: changed })}
        onDone={() => {
          reset();
          toasts.done('Saved');
        }}
      >
        <TextField
          label="Name"
          required
          value={draft.name}
          onChange={(event) => change({ name: event.target.value })}
        />
        <ContainerFields draft={draft} onChange={change} />
        <CheckField
          label="Locked"
          hint="It cannot be stopped, reset or terminated until it is unlocked"
          checked={draft.locked}
          onChange={(event) => change({ locked: event.target.checked })}
        />
        <ConflictNote fields={conflicts} current={current} />
        {restarts && (
          <Note tone="warn">
            This restarts the pod: what runs in it ends, and its container disk is emptied. Volumes stay.
          </Note>
        )}
      </SubmitForm>
    </Card>
  );
}

/** What is built into a container. */
const RESTARTING = ['image', 'args', 'disk', 'env', 'ports', 'registry'];

function changedFields(
  pod: Pod,
  draft: ReturnType<typeof containerDraft> & { name: string; locked: boolean },
): Record<string, unknown> {
  const wanted: Record<string, unknown> = { name: draft.name, locked: draft.locked, ...containerBody(draft) };
  const present = pod as unknown as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(present[name])),
  );
}
