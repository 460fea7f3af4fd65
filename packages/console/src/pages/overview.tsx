import { Link } from '@tanstack/react-router';
import { useApi } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import type { Endpoint, EndpointHealth } from '../api/types.ts';
import { StatusBadge } from '../components/badge.tsx';
import { LinkButton } from '../components/button.tsx';
import { formatCount, plural } from '../components/format.ts';
import { Card, Page, Stat } from '../components/page.tsx';
import { EmptyState, Loaded } from '../components/states.tsx';
import { useHealth } from './serverless/use-health.ts';
import { concernsOf } from './overview-concerns.ts';
import type { Concern, OverviewPod } from './overview-concerns.ts';

export function OverviewPage() {
  const endpoints = useApi<{ endpoints: Endpoint[] }>('/v2/serverless', { everyMs: 30_000 });
  const pods = useApi<{ pods: OverviewPod[] }>('/v2/pods', { everyMs: 30_000 });
  const limits = useApi<{ limits?: { name: string; used: number; limit: number | null }[] }>(
    '/v2/account/limits',
    {
      everyMs: 60_000,
    },
  );
  const may = usePermissions();
  const health = useHealth(endpoints.data?.endpoints ?? []);
  const sum = (pick: (health: EndpointHealth) => number): number =>
    [...health.values()].reduce((total, each) => total + pick(each), 0);
  const running = (pods.data?.pods ?? []).filter(({ status }) => status === 'RUNNING').length;
  const concerns = concernsOf(
    endpoints.data?.endpoints ?? [],
    health,
    pods.data?.pods ?? [],
    limits.data?.limits ?? [],
  );
  return (
    <Page title="Overview" description="What runs, and what needs you now.">
      <div className="grid stats">
        <Stat
          label="Endpoints"
          value={formatCount(endpoints.data?.endpoints.length ?? 0)}
          hint={<Link to="/serverless">Serverless</Link>}
        />
        <Stat
          label="Jobs waiting"
          value={formatCount(sum(({ jobs }) => jobs.inQueue))}
          hint={`${formatCount(sum(({ jobs }) => jobs.inProgress))} running`}
        />
        <Stat
          label="Workers"
          value={formatCount(sum(({ workers }) => workers.ready + workers.initializing))}
          hint={`${formatCount(sum(({ workers }) => workers.running))} busy`}
        />
        <Stat label="Pods running" value={formatCount(running)} hint={<Link to="/pods">Pods</Link>} />
      </div>
      <Loaded of={endpoints}>
        {({ endpoints: all }) =>
          all.length === 0 && (pods.data?.pods.length ?? 0) === 0 ? (
            <Card>
              <EmptyState
                title="Run your first job"
                command="npx berth deploy examples/echo"
                action={
                  may.write && (
                    <LinkButton to="/serverless/new" look="primary">
                      Create an endpoint from an example
                    </LinkButton>
                  )
                }
              >
                An endpoint runs your handler for every job. Start from an example here, or deploy a folder
                from a terminal.
              </EmptyState>
            </Card>
          ) : (
            <>
              <Card title="Needs you now">
                {concerns.length === 0 ? (
                  <p className="muted">Nothing. Everything that should run, runs.</p>
                ) : (
                  <Concerns concerns={concerns} />
                )}
              </Card>
              <Busiest endpoints={all} health={health} />
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Concerns({ concerns }: { concerns: Concern[] }) {
  return (
    <ul className="stack" style={{ margin: 0, padding: 0, listStyle: 'none' }}>
      {concerns.map(({ id, to, title, detail, status }) => (
        <li key={id} className="row">
          <StatusBadge status={status} />
          <Link to={to}>{title}</Link>
          <span className="muted">{detail}</span>
        </li>
      ))}
    </ul>
  );
}

function Busiest({ endpoints, health }: { endpoints: Endpoint[]; health: Map<string, EndpointHealth> }) {
  const busy = endpoints
    .flatMap((endpoint) => {
      const found = health.get(endpoint.id);
      return found === undefined ? [] : [{ endpoint, jobs: found.jobs, workers: found.workers }];
    })
    .sort(
      (left, right) =>
        right.jobs.inQueue + right.jobs.inProgress - (left.jobs.inQueue + left.jobs.inProgress),
    )
    .slice(0, 8);
  if (busy.length === 0) return null;
  return (
    <Card title="Endpoints" actions={<Link to="/serverless">All</Link>}>
      <ul className="stack" style={{ margin: 0, padding: 0, listStyle: 'none' }}>
        {busy.map(({ endpoint, jobs, workers }) => (
          <li key={endpoint.id} className="row between">
            <Link to={`/serverless/${endpoint.id}`}>{endpoint.name}</Link>
            <span className="muted">
              {plural(jobs.inQueue, 'job')} waiting, {formatCount(jobs.inProgress)} running,{' '}
              {formatCount(jobs.completed)} completed, {plural(workers.ready, 'worker')}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
