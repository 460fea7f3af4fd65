import { Link } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { EndpointHealth, ErrorGroup, WorkerList } from '../../api/types.ts';
import { Command } from '../../components/copy.tsx';
import { formatCount, plural } from '../../components/format.ts';
import { Card, Facts, Stat } from '../../components/page.tsx';
import { Loaded, Note } from '../../components/states.tsx';
import { Ago } from '../../components/time.tsx';
import type { TabProps } from './tab-props.ts';
import { hardwareOf, scalingOf } from './endpoint-words.ts';

export default function OverviewTab({ endpoint }: TabProps) {
  const { id, type } = endpoint;
  const may = usePermissions();
  const workers = useApi<WorkerList>(`/v2/serverless/${id}/workers`, { everyMs: 10_000 });
  const isQueue = type === 'QUEUE' && may.readJobs(id);
  const health = useApi<EndpointHealth>(`/v2/${id}/health`, { enabled: isQueue, everyMs: 10_000 });
  const errors = useApi<{ groups: ErrorGroup[] }>(`/v2/serverless/${id}/errors`, { enabled: isQueue });
  const reason = workers.data?.reason;
  const waiting = health.data?.jobs.inQueue ?? 0;
  return (
    <>
      {reason !== null && reason !== undefined && (waiting > 0 || type === 'LOAD_BALANCER') && (
        <Note tone="warn">
          <strong>{waiting > 0 ? `${plural(waiting, 'job')} waiting: ` : ''}</strong>
          {reason}
        </Note>
      )}
      <div className="grid stats">
        {isQueue && (
          <>
            <Stat label="In queue" value={formatCount(health.data?.jobs.inQueue ?? 0)} />
            <Stat label="Running" value={formatCount(health.data?.jobs.inProgress ?? 0)} />
            <Stat
              label="Ended"
              value={formatCount((health.data?.jobs.completed ?? 0) + (health.data?.jobs.failed ?? 0))}
              hint={
                <Link to={`/serverless/${id}/requests`} search={{ status: 'FAILED' }}>
                  {formatCount(health.data?.jobs.failed ?? 0)} failed
                </Link>
              }
            />
          </>
        )}
        <Stat
          label="Workers"
          value={formatCount(workers.data?.summary.total ?? 0)}
          hint={
            workers.data &&
            `${workers.data.summary.running} busy, ${workers.data.summary.idle} idle, ` +
              `${workers.data.summary.initializing} starting`
          }
        />
      </div>
      <div className="grid two">
        <Card title="How it runs">
          <Facts
            facts={[
              ['Image', <code key="image">{endpoint.image}</code>],
              ['Hardware', hardwareOf(endpoint)],
              ['Workers', `${endpoint.workers.min} to ${endpoint.workers.max}`],
              ['Scaling', scalingOf(endpoint)],
              ['Data centers', endpoint.dataCenterIds.join(', ') || 'any'],
              ['Created', <Ago key="created" at={endpoint.createdAt} />],
            ]}
          />
        </Card>
        {isQueue && (
          <Card title="What fails" actions={<Link to={`/serverless/${id}/requests`}>All requests</Link>}>
            <Loaded of={errors}>
              {({ groups }) =>
                groups.length === 0 ? (
                  <p className="muted">No failed jobs are stored.</p>
                ) : (
                  <ul className="stack" style={{ margin: 0, paddingLeft: 18 }}>
                    {groups.slice(0, 5).map((group) => (
                      <li key={group.fingerprint}>
                        <Link to={`/serverless/${id}/requests`} search={{ fingerprint: group.fingerprint }}>
                          {plural(group.count, 'job')}
                        </Link>{' '}
                        <span className="mono">
                          {group.type}: {group.message.slice(0, 200)}
                        </span>{' '}
                        <span className="muted">
                          (last <Ago at={group.lastSeen} />)
                        </span>
                      </li>
                    ))}
                  </ul>
                )
              }
            </Loaded>
          </Card>
        )}
      </div>
      <Card title="Call it">
        <div className="stack">
          <Command>{`npx berth run ${endpoint.name} '{"input": {}}'`}</Command>
          {Object.entries(endpoint.requestUrls)
            .slice(0, 2)
            .map(([name, url]) => (
              <Command key={name}>{url}</Command>
            ))}
        </div>
      </Card>
    </>
  );
}
