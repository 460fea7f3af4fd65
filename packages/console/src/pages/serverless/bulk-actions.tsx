import { useState } from 'react';
import { useWrite } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { plural } from '../../components/format.ts';
import { useToasts } from '../../components/toast.tsx';
import { searchFilter } from './job-search.ts';
import type { JobSearch } from './job-search.ts';
import { EditAndSend } from './redrive/edit-and-send.tsx';
import type { BulkResult, RedriveTarget } from './redrive/send-edited.ts';

type Action = 'retry' | 'cancel' | 'redrive';

const ABOUT: Record<Action, { label: string; done: string; lost: string }> = {
  retry: {
    label: 'Retry',
    done: 'retried',
    lost:
      'The same jobs go to the end of the queue. Their errors are forgotten; jobs that did not fail are ' +
      'left alone.',
  },
  redrive: {
    label: 'Send again',
    done: 'sent again',
    lost: 'New jobs get the same requests. The old ones stay as they are.',
  },
  cancel: {
    label: 'Cancel',
    done: 'cancelled',
    lost: 'Jobs that wait are dropped. With running jobs selected, their work is lost too.',
  },
};

/** Retries, repeats or cancels the selected jobs, or all that match the filter. */
export function BulkActions({
  endpointId,
  search,
  selected,
  onDone,
}: {
  endpointId: string;
  search: JobSearch;
  selected: ReadonlySet<string>;
  onDone: () => void;
}) {
  const [action, setAction] = useState<Action>();
  /** The jobs whose inputs are being edited. */
  const [edited, setEdited] = useState<RedriveTarget>();
  const write = useWrite<BulkResult>(`/v2/serverless/${endpointId}`, `/v2/${endpointId}`);
  const toasts = useToasts();
  const jobs: RedriveTarget = selected.size > 0 ? { ids: [...selected] } : { filter: searchFilter(search) };
  const target = selected.size > 0 ? plural(selected.size, 'selected job') : 'all jobs that match';
  const confirm = async (): Promise<void> => {
    if (action === undefined) return;
    const result = await write.mutateAsync({
      path: `/v2/serverless/${endpointId}/jobs/${action}`,
      body: jobs,
    });
    const skipped = result.skipped.length === 0 ? '' : `; ${result.skipped.length} skipped`;
    const more = result.nextCursor === null ? '' : '. There are more: do it again for the rest';
    toasts.done(`${plural(result.done, 'job')} ${ABOUT[action].done}${skipped}${more}`);
    onDone();
  };
  return (
    <div className="row">
      <span className="muted">For {target}:</span>
      {(Object.keys(ABOUT) as Action[]).map((each) => (
        <Button
          key={each}
          small
          variant={each === 'cancel' ? 'danger' : 'plain'}
          onClick={() => setAction(each)}
        >
          {ABOUT[each].label}
        </Button>
      ))}
      <Button small onClick={() => setEdited(jobs)}>
        Edit and send again …
      </Button>
      {edited !== undefined && (
        <EditAndSend
          endpointId={endpointId}
          target={edited}
          onClose={() => {
            setEdited(undefined);
            onDone();
          }}
        />
      )}
      {action !== undefined && (
        <ConfirmDialog
          open
          onClose={() => setAction(undefined)}
          title={`${ABOUT[action].label}: ${target}?`}
          lost={ABOUT[action].lost}
          action={ABOUT[action].label}
          danger={action === 'cancel'}
          onConfirm={confirm}
        />
      )}
    </div>
  );
}
