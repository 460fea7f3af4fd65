import { Link } from '@tanstack/react-router';
import { useOverview } from '../api/overview.ts';
import type { AccountOverview, ActiveEndpoint } from '../api/overview.ts';
import { useApi } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { StatusBadge } from '../components/badge.tsx';
import { LinkButton } from '../components/button.tsx';
import { formatCount, plural } from '../components/format.ts';
import { Card, Page, Stat } from '../components/page.tsx';
import { EmptyState, Loaded } from '../components/states.tsx';
import { concernsOf } from './overview-concerns.ts';
import type { Concern, LimitUse } from './overview-concerns.ts';

const MAX_CONCERNS = 30;
const MAX_BUSIEST = 8;

export function OverviewPage() {
  const overview = useOverview();
  return (
    <Page title="Overview" description="What runs, and what needs you now.">
      <Loaded of={overview}>{(state) => <AccountState state={state} />}</Loaded>
    </Page>
  );
}

function AccountState({ state }: { state: AccountOverview }) {
  const limits = useApi<{ limits?: LimitUse[] }>('/v2/account/limits', { everyMs: 60_000 });
  const { jobs, workers, pods } = state;
  return (
    <>
      <div className="grid stats">
        <Stat
          label="Endpoints"
          value={formatCount(state.endpoints)}
          hint={<Link to="/serverless">Serverless</Link>}
        />
        <Stat
          label="Jobs waiting"
          value={formatCount(jobs.inQueue)}
          hint={`${formatCount(jobs.inProgress)} running`}
        />
        <Stat
          label="Workers"
          value={formatCount(workers.ready + workers.initializing)}
          hint={`${formatCount(workers.running)} busy`}
        />
        <Stat
          label="Pods running"
          value={formatCount(pods.byStatus['RUNNING'] ?? 0)}
          hint={<Link to="/pods">{formatCount(pods.total)} in all</Link>}
        />
      </div>
      {state.endpoints === 0 && pods.total === 0 ? (
        <FirstSteps />
      ) : (
        <>
          <Concerns concerns={concernsOf(state, limits.data?.limits ?? [])} />
          <Busiest endpoints={state.active.slice(0, MAX_BUSIEST)} />
        </>
      )}
    </>
  );
}

function FirstSteps() {
  const may = usePermissions();
  return (
    <Card>
      <EmptyState
        title="Run your first job"
        command="npx berth deploy examples/echo"
        action={
          may.write && (
            <LinkButton to="/serverless/new" variant="primary">
              Create an endpoint from an example
            </LinkButton>
          )
        }
      >
        An endpoint runs your handler for every job. Start from an example here, or deploy a folder from a
        terminal.
      </EmptyState>
    </Card>
  );
}

function Concerns({ concerns }: { concerns: Concern[] }) {
  return (
    <Card title="Needs you now">
      {concerns.length === 0 ? (
        <p className="muted">Nothing. Everything that should run, runs.</p>
      ) : (
        <ul className="stack plain-list">
          {concerns.slice(0, MAX_CONCERNS).map(({ id, to, title, detail, status }) => (
            <li key={id} className="row">
              <StatusBadge status={status} />
              <Link to={to}>{title}</Link>
              <span className="muted">{detail}</span>
            </li>
          ))}
        </ul>
      )}
      {concerns.length > MAX_CONCERNS && (
        <p className="muted">and {formatCount(concerns.length - MAX_CONCERNS)} more</p>
      )}
    </Card>
  );
}

function Busiest({ endpoints }: { endpoints: ActiveEndpoint[] }) {
  if (endpoints.length === 0) return null;
  return (
    <Card title="Busiest endpoints" actions={<Link to="/serverless">All</Link>}>
      <ul className="stack plain-list">
        {endpoints.map(({ id, name, jobs, workers }) => (
          <li key={id} className="row between">
            <Link to={`/serverless/${id}`}>{name}</Link>
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
