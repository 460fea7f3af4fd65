import { Link } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint, JobDetail, LogEntry, StartPhases, WorkerList } from '../../api/types.ts';
import { StatusBadge } from '../../components/badge.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { formatDuration } from '../../components/format.ts';
import { JsonView } from '../../components/json-view.tsx';
import { toLogRow } from '../../components/log-lines.ts';
import { LogView, useLogFilter } from '../../components/log-view.tsx';
import { Facts } from '../../components/page.tsx';
import { Loaded, Note } from '../../components/states.tsx';
import { Ago } from '../../components/time.tsx';
import { readErrorDetail } from './error-detail.ts';
import { JobActions } from './job-actions.tsx';
import { JobStream } from './job-stream.tsx';
import { Phases } from './phases.tsx';

/** Everything about one job: what went in and out, why it waits, how its worker started, its log. */
export function JobDialog({
  endpoint,
  jobId,
  onClose,
}: {
  endpoint: Endpoint;
  jobId: string | undefined;
  onClose: () => void;
}) {
  const job = useApi<JobDetail>(`/v2/serverless/${endpoint.id}/jobs/${jobId ?? ''}`, {
    enabled: jobId !== undefined,
    everyMs: 3_000,
  });
  return (
    <Dialog open={jobId !== undefined} onClose={onClose} title={`Job ${jobId ?? ''}`} shape="side">
      <Loaded of={job}>{(found) => <Details endpoint={endpoint} job={found} />}</Loaded>
    </Dialog>
  );
}

function Details({ endpoint: { id }, job }: { endpoint: Endpoint; job: JobDetail }) {
  const may = usePermissions();
  const isOpen = job.status === 'IN_QUEUE' || job.status === 'IN_PROGRESS';
  const status = useApi<{ phases?: StartPhases; reason?: string }>(`/v2/${id}/status/${job.id}`, {
    enabled: job.status !== 'CANCELLED',
  });
  const workers = useApi<WorkerList>(`/v2/serverless/${id}/workers`, { enabled: job.status === 'IN_QUEUE' });
  const reason = status.data?.reason ?? workers.data?.reason;
  return (
    <div className="stack lg">
      <div className="row between">
        <div className="row">
          <StatusBadge status={job.status} />
          <CopyButton text={job.id} label="Copy the id" />
        </div>
        {may.run(id) && <JobActions endpointId={id} job={job} />}
      </div>
      {job.status === 'IN_QUEUE' && (
        <Note tone="warn">
          <strong>Why it waits</strong>
          {reason ?? 'Workers are busy with other jobs, or one is starting.'}
        </Note>
      )}
      {job.error !== null && (
        <Note tone="bad">
          <pre>{job.error}</pre>
        </Note>
      )}
      <Facts
        facts={[
          ['Created', <Ago key="at" at={job.createdAt} />],
          ['Waited', job.delayTime === null ? '–' : formatDuration(job.delayTime)],
          ['Ran', job.executionTime === null ? '–' : formatDuration(job.executionTime)],
          [
            'Worker',
            job.workerId === null ? (
              '–'
            ) : (
              <Link
                key="worker"
                to={`/serverless/${id}/logs`}
                search={{ worker: job.workerId, ...(job.startedAt !== null && { at: job.startedAt }) }}
              >
                <code>{job.workerId}</code>
              </Link>
            ),
          ],
          ['Retries', String(job.retries)],
          ...(job.webhook === null
            ? []
            : [['Webhook', <code key="hook">{job.webhook}</code>] as [string, React.ReactNode]]),
        ]}
      />
      {status.data?.phases !== undefined && (
        <section className="stack">
          <h3>Cold start: this job waited for its worker to start</h3>
          <Phases phases={status.data.phases} />
        </section>
      )}
      {isOpen && <JobStream endpointId={id} jobId={job.id} />}
      <JsonView label="Input" value={job.input} />
      {job.output !== null && job.output !== undefined && <JsonView label="Output" value={job.output} />}
      {job.errorDetail !== null && <ErrorDetail detail={job.errorDetail} />}
      {job.status !== 'IN_QUEUE' && <JobLog endpointId={id} jobId={job.id} />}
    </div>
  );
}

/** Workers send an error as JSON in a string, with the traceback in it. */
function ErrorDetail({ detail }: { detail: unknown }) {
  const { traceback, rest } = readErrorDetail(detail);
  return (
    <>
      {traceback !== undefined && <JsonView label="Traceback" value={traceback} />}
      <JsonView label="Error in full" value={rest} />
    </>
  );
}

function JobLog({ endpointId, jobId }: { endpointId: string; jobId: string }) {
  const filter = useLogFilter();
  const log = useApi<{ logs: LogEntry[] }>(`/v2/${endpointId}/logs/${jobId}`);
  return (
    <section className="stack">
      <h3>Log of the job</h3>
      <Loaded of={log}>
        {({ logs }) =>
          logs.length === 0 ? (
            <p className="muted">It printed nothing, or its log is gone.</p>
          ) : (
            <LogView rows={logs.map((entry) => toLogRow(entry))} filter={filter} name={jobId} height="30vh" />
          )
        }
      </Loaded>
    </section>
  );
}
