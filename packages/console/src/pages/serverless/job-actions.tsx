import { useState } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { JobDetail } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx';
import { JsonEditor } from '../../components/json-editor.tsx';
import { jsonProblem } from '../../components/json-text.ts';
import { useToasts } from '../../components/toast.tsx';

/** What can be done with one job. What loses something asks first. */
export function JobActions({ endpointId, job }: { endpointId: string; job: JobDetail }) {
  const { write } = usePermissions();
  const [asked, setAsked] = useState<'cancel' | 'retry'>();
  const { status } = job;
  const isOpen = status === 'IN_QUEUE' || status === 'IN_PROGRESS';
  return (
    <div className="row">
      {isOpen && (
        <Button small variant="danger" onClick={() => setAsked('cancel')}>
          Cancel
        </Button>
      )}
      {(status === 'FAILED' || status === 'TIMED_OUT') && (
        <Button small onClick={() => setAsked('retry')}>
          Retry
        </Button>
      )}
      {/* Sending again with another input is a write of REST v2; the other two belong to the job API. */}
      {!isOpen && write && <SendAgain endpointId={endpointId} job={job} />}
      {asked !== undefined && (
        <Confirm action={asked} endpointId={endpointId} job={job} onClose={() => setAsked(undefined)} />
      )}
    </div>
  );
}

function Confirm({
  action,
  endpointId,
  job: { id, status },
  onClose,
}: {
  action: 'cancel' | 'retry';
  endpointId: string;
  job: JobDetail;
  onClose: () => void;
}) {
  const toasts = useToasts();
  const act = useWrite(`/v2/serverless/${endpointId}`, `/v2/${endpointId}`);
  const run = async (): Promise<void> => {
    await act.mutateAsync({ path: `/v2/${endpointId}/${action}/${id}` });
    toasts.done(action === 'cancel' ? 'Cancelled' : 'Back in the queue');
  };
  if (action === 'retry')
    return (
      <ConfirmDialog
        open
        onClose={onClose}
        title="Retry this job?"
        lost="The same job goes to the end of the queue with the same input. Its error is forgotten."
        action="Retry the job"
        danger={false}
        onConfirm={run}
      />
    );
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title="Cancel this job?"
      lost={
        status === 'IN_QUEUE'
          ? 'It leaves the queue and does not run. Its input stays, so that it can be sent again.'
          : 'It is running: its work so far is lost. Its input stays, so that it can be sent again.'
      }
      action="Cancel the job"
      onConfirm={run}
    />
  );
}

function SendAgain({ endpointId, job }: { endpointId: string; job: JobDetail }) {
  const toasts = useToasts();
  const navigate = useNavigate();
  const redrive = useWrite(`/v2/serverless/${endpointId}`);
  const [input, setInput] = useState<string>();
  const send = async (): Promise<void> => {
    try {
      await redrive.mutateAsync({
        path: `/v2/serverless/${endpointId}/jobs/redrive`,
        body: { ids: [job.id], input: JSON.parse(input ?? 'null') as unknown },
      });
      toasts.done('Sent again as a new job');
      setInput(undefined);
      await navigate({ to: `/serverless/${endpointId}/requests`, search: {} });
    } catch (error) {
      toasts.failed(error);
    }
  };
  return (
    <>
      <Button small onClick={() => setInput(JSON.stringify(job.input, null, 2))}>
        Edit and send again
      </Button>
      <Dialog
        open={input !== undefined}
        onClose={() => setInput(undefined)}
        title="Send again"
        description="A new job gets this input. The old one stays as it is."
      >
        <JsonEditor label="Input" value={input ?? ''} onChange={setInput} />
        <div className="row end">
          <Button
            variant="primary"
            disabled={redrive.isPending || jsonProblem(input ?? '') !== undefined}
            onClick={() => void send()}
          >
            Send
          </Button>
        </div>
      </Dialog>
    </>
  );
}
