import { useApi } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Command } from '../components/copy.tsx';
import { formatBytes, formatCount, formatDuration, plural } from '../components/format.ts';
import { Card, Facts, Page, Stat } from '../components/page.tsx';
import { EmptyState, Loaded } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Ago } from '../components/time.tsx';

interface SystemGpu {
  id: string;
  total: number;
  free: number;
  virtual: boolean;
  memory: number;
  cudaVersion: string | null;
}

interface SystemNode {
  name: string;
  ready: boolean;
  schedulable: boolean;
  cores: number;
  memory: number;
  gpus: SystemGpu[];
}

interface SystemDataCenter {
  id: string;
  name: string;
  engine: string;
  isolation: string | null;
  cpu: { model: string; cores: number; threads: number };
  memory: number;
  freeMemory: number | null;
  gpus: SystemGpu[];
  /** Of a Kubernetes cluster. */
  nodes: SystemNode[];
  pods: number;
  workers: number;
}

interface SystemServer {
  id: string;
  address: string;
  version: string;
  startedAt: string;
  leading: boolean;
  silentSeconds: number;
}

interface System {
  version: string;
  database: 'sqlite' | 'postgres';
  server: {
    host: string;
    pid: number;
    startedAt: string;
    leading: boolean;
    node: string;
    platform: string;
    memoryBytes: number;
    machineMemoryBytes: number;
  };
  /** All servers on one PostgreSQL; empty with SQLite. */
  servers: SystemServer[];
  dataCenters: SystemDataCenter[];
  counts: { accounts: number; activePods: number; liveWorkers: number };
  queue: {
    queued: number;
    oldestWait: number | null;
    longest: { endpointId: string; queued: number; running: number; oldestWait: number | null }[];
  };
  checks: { ranAt: string; results: { check: string; ok: boolean; found: string; remedy?: string }[] };
  backups: { target: string; lastAt: string | null; error: string | null };
}

export default function SystemPage() {
  const { operator } = usePermissions();
  const system = useApi<System>('/v2/system', { everyMs: 10_000, enabled: operator });
  return (
    <Page title="System" description="The whole installation, for its operator.">
      {operator ? (
        <Loaded of={system}>{(state) => <Overview state={state} />}</Loaded>
      ) : (
        <EmptyState title="Only operators see this page">
          Sign in with a key with full access of the root account.
        </EmptyState>
      )}
    </Page>
  );
}

function Overview({ state }: { state: System }) {
  const { queue, counts, checks } = state;
  const wrong = checks.results.filter(({ ok }) => !ok).length;
  return (
    <>
      <div className="grid">
        <Stat
          label="Queued jobs"
          value={formatCount(queue.queued)}
          hint={
            queue.oldestWait === null
              ? 'the queues are empty'
              : `the oldest waits for ${formatDuration(queue.oldestWait * 1000)}`
          }
        />
        <Stat label="Workers" value={formatCount(counts.liveWorkers)} />
        <Stat label="Active pods" value={formatCount(counts.activePods)} />
        <Stat label="Accounts" value={formatCount(counts.accounts)} />
      </div>
      <Checks state={state} wrong={wrong} />
      {state.dataCenters.map((place) => (
        <DataCenterCard key={place.id} place={place} />
      ))}
      <Queues state={state} />
      {state.servers.length > 0 && <Servers servers={state.servers} />}
      <div className="grid two">
        <Card
          title="This server"
          actions={
            <Badge tone={state.server.leading ? 'good' : 'idle'}>
              {state.server.leading ? 'leader' : 'follower'}
            </Badge>
          }
        >
          <Facts
            facts={[
              ['Berth', state.version],
              ['Database', state.database === 'sqlite' ? 'SQLite' : 'PostgreSQL'],
              ['Node', state.server.node],
              ['Machine', `${state.server.host}, ${state.server.platform}`],
              ['Process', `${state.server.pid}, ${formatBytes(state.server.memoryBytes)} of memory`],
              ['Started', <Ago at={state.server.startedAt} />],
            ]}
          />
        </Card>
        <Backups state={state} />
      </div>
    </>
  );
}

function Checks({ state, wrong }: { state: System; wrong: number }) {
  return (
    <Card
      flush
      title="Doctor"
      actions={
        <>
          <Badge tone={wrong === 0 ? 'good' : 'bad'}>{wrong === 0 ? 'all passed' : `${wrong} failed`}</Badge>
          <span className="muted">
            checked <Ago at={state.checks.ranAt} />
          </span>
        </>
      }
    >
      <DataTable
        label="Checks"
        rows={state.checks.results}
        rowKey={({ check }) => check}
        columns={[
          { header: 'Check', cell: ({ check }) => check },
          {
            header: 'Result',
            cell: ({ ok }) => <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'passed' : 'failed'}</Badge>,
          },
          {
            header: 'Found',
            cell: ({ found, remedy }) => (
              <>
                {found}
                {remedy !== undefined && <div className="muted">{remedy}</div>}
              </>
            ),
          },
        ]}
      />
    </Card>
  );
}

function DataCenterCard({ place }: { place: SystemDataCenter }) {
  return (
    <Card
      title={`${place.id} · ${place.name}`}
      actions={
        place.memory === 0 ? <Badge tone="bad">does not answer</Badge> : <Badge tone="good">connected</Badge>
      }
    >
      <div className="stack lg">
        <Facts
          facts={[
            ['Engine', place.engine],
            ['Isolation of accounts', place.isolation ?? 'unknown'],
            ['CPU', `${place.cpu.model}, ${place.cpu.threads} threads`],
            [
              'Memory',
              `${place.memory} GB${place.freeMemory === null ? '' : `, ${Math.round(place.freeMemory)} GB free`}`,
            ],
            ['Runs', `${plural(place.pods, 'pod')}, ${plural(place.workers, 'worker')}`],
          ]}
        />
        {place.nodes.length > 0 && <Nodes place={place} />}
        {place.gpus.length > 0 && (
          <DataTable
            label={`GPUs of ${place.id}`}
            rows={place.gpus}
            rowKey={({ id }) => id}
            columns={[
              { header: 'GPU', cell: ({ id, virtual }) => `${id}${virtual ? ' (virtual)' : ''}` },
              { header: 'Free', kind: 'number', cell: ({ free, total }) => `${free} of ${total}` },
              {
                header: 'Memory',
                kind: 'number',
                cell: ({ memory }) => (memory === 0 ? '' : `${memory} GB`),
              },
              { header: 'CUDA', cell: ({ cudaVersion }) => cudaVersion ?? '' },
            ]}
          />
        )}
      </div>
    </Card>
  );
}

function Nodes({ place: { id, nodes } }: { place: SystemDataCenter }) {
  return (
    <DataTable
      label={`Nodes of ${id}`}
      rows={nodes}
      rowKey={({ name }) => name}
      height="40vh"
      columns={[
        { header: 'Node', cell: ({ name }) => <code>{name}</code> },
        {
          header: 'State',
          cell: ({ ready, schedulable }) =>
            !ready ? (
              <Badge tone="bad">not ready</Badge>
            ) : schedulable ? (
              <Badge tone="good">ready</Badge>
            ) : (
              <Badge tone="warn">cordoned</Badge>
            ),
        },
        { header: 'CPU', kind: 'number', cell: ({ cores }) => `${Math.round(cores * 10) / 10}` },
        { header: 'Memory', kind: 'number', cell: ({ memory }) => `${memory} GB` },
        {
          header: 'GPUs',
          cell: ({ gpus }) => gpus.map((gpu) => `${gpu.id}: ${gpu.free} of ${gpu.total} free`).join(', '),
        },
      ]}
    />
  );
}

/** A server gives a sign of life every second; one that has been silent for longer may be gone. */
const SILENT_SECONDS = 10;

function Servers({ servers }: { servers: SystemServer[] }) {
  return (
    <Card flush title="Servers">
      <DataTable
        label="Servers"
        rows={servers}
        rowKey={({ id }) => id}
        columns={[
          { header: 'Server', cell: ({ id }) => <code>{id}</code> },
          { header: 'Address', cell: ({ address }) => <code>{address}</code> },
          {
            header: 'Role',
            cell: ({ leading }) => (
              <Badge tone={leading ? 'good' : 'idle'}>{leading ? 'leader' : 'follower'}</Badge>
            ),
          },
          { header: 'Version', cell: ({ version }) => version },
          { header: 'Started', cell: ({ startedAt }) => <Ago at={startedAt} /> },
          {
            header: 'Last heartbeat',
            cell: ({ silentSeconds }) =>
              silentSeconds > SILENT_SECONDS ? (
                <Badge tone="bad">{`${formatDuration(silentSeconds * 1000)} ago`}</Badge>
              ) : (
                'now'
              ),
          },
        ]}
      />
    </Card>
  );
}

function Queues({ state: { queue } }: { state: System }) {
  return (
    <Card flush title="Longest queues">
      <DataTable
        label="Longest queues"
        rows={queue.longest}
        rowKey={({ endpointId }) => endpointId}
        columns={[
          { header: 'Endpoint', cell: ({ endpointId }) => <code>{endpointId}</code> },
          { header: 'Waiting', kind: 'number', cell: ({ queued }) => formatCount(queued) },
          { header: 'Running', kind: 'number', cell: ({ running }) => formatCount(running) },
          {
            header: 'Oldest wait',
            kind: 'number',
            cell: ({ oldestWait }) => (oldestWait === null ? '' : formatDuration(oldestWait * 1000)),
          },
        ]}
        empty={<p className="empty">No job waits or runs.</p>}
      />
    </Card>
  );
}

function Backups({ state: { backups } }: { state: System }) {
  return (
    <Card title="Backups">
      {backups.target === '' ? (
        <div className="stack">
          <p>None are scheduled. Set backup.target to have them made, or make one now:</p>
          <Command>npx berth backup berth.tar</Command>
        </div>
      ) : (
        <Facts
          facts={[
            ['Target', <code>{backups.target}</code>],
            ['Last', <Ago at={backups.lastAt} />],
            ['Result', backups.error ?? 'succeeded'],
          ]}
        />
      )}
    </Card>
  );
}
