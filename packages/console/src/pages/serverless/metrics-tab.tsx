import { decimal, HistoryCharts, percent, USAGE_CHARTS } from '../../components/history.tsx';
import type { ChartSpec, Sampled, UsagePoint } from '../../components/history.tsx';
import { formatCount, formatDuration, formatMoney } from '../../components/format.ts';
import { Stat } from '../../components/page.tsx';
import type { TabProps } from './tab-props.ts';

type Percentiles = Record<'average' | 'p50' | 'p70' | 'p90' | 'p98', number> | null;

interface Point extends UsagePoint {
  requests: number;
  completed: number;
  failed: number;
  cancelled: number;
  timedOut: number;
  retries: number;
  waitTime: Percentiles;
  runTime: Percentiles;
  queued: Sampled;
  running: Sampled;
  workers: Record<'running' | 'idle' | 'initializing' | 'throttled' | 'unhealthy', number | null>;
  coldStarts: { count: number } & Record<'imageMs' | 'startMs' | 'connectMs' | 'totalMs', number | null>;
}

const percentileLines = (pick: (point: Point) => Percentiles): ChartSpec<Point>['lines'] => [
  ['50 %', (point) => pick(point)?.p50],
  ['70 %', (point) => pick(point)?.p70],
  ['90 %', (point) => pick(point)?.p90],
  ['98 %', (point) => pick(point)?.p98],
];

const CHARTS: ChartSpec<Point>[] = [
  {
    title: 'Requests',
    format: formatCount,
    lines: [
      ['submitted', ({ requests }) => requests],
      ['completed', ({ completed }) => completed],
      ['cancelled', ({ cancelled }) => cancelled],
      ['failed', ({ failed }) => failed],
      ['timed out', ({ timedOut }) => timedOut],
    ],
  },
  {
    title: 'In the queue and running',
    format: formatCount,
    lines: [
      ['waiting', ({ queued }) => queued?.average],
      ['running', ({ running }) => running?.average],
    ],
  },
  { title: 'Time in the queue', format: formatDuration, lines: percentileLines(({ waitTime }) => waitTime) },
  { title: 'Run time', format: formatDuration, lines: percentileLines(({ runTime }) => runTime) },
  {
    title: 'Workers',
    format: decimal,
    lines: [
      ['busy', ({ workers }) => workers.running],
      ['idle', ({ workers }) => workers.idle],
      ['starting', ({ workers }) => workers.initializing],
      ['unhealthy', ({ workers }) => workers.unhealthy],
      ['throttled', ({ workers }) => workers.throttled],
    ],
  },
  {
    title: 'Cold starts, on average',
    format: formatDuration,
    lines: [
      ['image', ({ coldStarts }) => coldStarts.imageMs],
      ['container', ({ coldStarts }) => coldStarts.startMs],
      ['program', ({ coldStarts }) => coldStarts.connectMs],
    ],
  },
  ...USAGE_CHARTS,
];

export default function MetricsTab({ endpoint: { id } }: TabProps) {
  return (
    <HistoryCharts path={`/v2/serverless/${id}/metrics`} charts={CHARTS}>
      {(total) => <Totals total={total} />}
    </HistoryCharts>
  );
}

function Totals({ total }: { total: Point }) {
  const ended = total.completed + total.failed + total.timedOut;
  return (
    <div className="grid stats">
      <Stat label="Requests" value={formatCount(total.requests)} />
      <Stat
        label="Failed"
        value={formatCount(total.failed + total.timedOut)}
        hint={ended === 0 ? undefined : percent((total.failed + total.timedOut) / ended)}
      />
      <Stat label="Run time, 90 %" value={total.runTime === null ? '–' : formatDuration(total.runTime.p90)} />
      <Stat label="Cold starts" value={formatCount(total.coldStarts.count)} />
      <Stat label="Cost" value={formatMoney(total.cost)} />
    </div>
  );
}
