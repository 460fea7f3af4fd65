import { useMemo } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { Chart } from '../../components/chart.tsx';
import type { Series } from '../../components/chart.tsx';
import { Segmented } from '../../components/form.tsx';
import { formatBytes, formatCount, formatDuration, formatMoney } from '../../components/format.ts';
import { Card, Stat } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import type { TabProps } from './endpoint.tsx';

type Percentiles = Record<'average' | 'p50' | 'p70' | 'p90' | 'p98', number> | null;
type Sampled = { average: number; max: number } | null;

interface Point {
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
  cpu: Sampled;
  memory: Sampled;
  gpu: Sampled;
  gpuMemory: Sampled;
  cost: number;
}

interface History {
  stepSeconds: number;
  points: ({ at: string } & Point)[];
  total: Point;
}

const RANGES = [
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['24h', '1 day'],
  ['7d', '7 days'],
  ['30d', '30 days'],
] as const;
type Range = (typeof RANGES)[number][0];

const percent = (share: number): string => `${Math.round(share * 100)} %`;
const cores = (value: number): string => value.toFixed(2);

interface ChartSpec {
  title: string;
  format: (value: number) => string;
  lines: [label: string, pick: (point: Point) => number | null | undefined][];
  /** Left out if there is nothing to show. */
  optional?: boolean;
}

const percentileLines = (pick: (point: Point) => Percentiles): ChartSpec['lines'] => [
  ['50 %', (point) => pick(point)?.p50],
  ['70 %', (point) => pick(point)?.p70],
  ['90 %', (point) => pick(point)?.p90],
  ['98 %', (point) => pick(point)?.p98],
];

const CHARTS: ChartSpec[] = [
  {
    title: 'Requests',
    format: formatCount,
    lines: [
      ['submitted', ({ requests }) => requests],
      ['completed', ({ completed }) => completed],
      ['cancelled', ({ cancelled }) => cancelled],
      ['failed', ({ failed, timedOut }) => failed + timedOut],
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
    format: cores,
    lines: [
      ['busy', ({ workers }) => workers.running],
      ['idle', ({ workers }) => workers.idle],
      ['starting', ({ workers }) => workers.initializing],
      ['unhealthy', ({ workers }) => workers.unhealthy],
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
  { title: 'CPU cores', format: cores, lines: [['used', ({ cpu }) => cpu?.average]], optional: true },
  {
    title: 'Memory',
    format: formatBytes,
    lines: [['used', ({ memory }) => memory?.average]],
    optional: true,
  },
  {
    title: 'GPU',
    format: percent,
    lines: [
      ['busy', ({ gpu }) => gpu?.average],
      ['memory', ({ gpuMemory }) => gpuMemory?.average],
    ],
    optional: true,
  },
  { title: 'Cost', format: formatMoney, lines: [['spent', ({ cost }) => cost]] },
];

export default function MetricsTab({ endpoint: { id } }: TabProps) {
  const { range = '6h' }: { range?: Range } = useSearch({ strict: false });
  const navigate = useNavigate();
  const history = useApi<History>(`/v2/serverless/${id}/metrics`, {
    query: { range },
    everyMs: 30_000,
    keepPrevious: true,
  });
  return (
    <>
      <Segmented
        label="Range"
        value={range}
        options={RANGES}
        onChange={(next) =>
          void navigate({ to: `/serverless/${id}/metrics`, search: { range: next }, replace: true })
        }
      />
      <Loaded of={history}>{(data) => <Charts data={data} />}</Loaded>
    </>
  );
}

function Charts({ data }: { data: History }) {
  const times = useMemo(() => data.points.map(({ at }) => Date.parse(at) / 1000), [data]);
  const charts = useMemo(
    () =>
      CHARTS.map((spec) => ({
        ...spec,
        series: spec.lines.map((line) => seriesOf(line, data.points)),
      })).filter(
        ({ optional, series }) =>
          optional !== true || series.some(({ values }) => values.some((value) => value !== null)),
      ),
    [data],
  );
  const { total } = data;
  const ended = total.completed + total.failed + total.timedOut;
  return (
    <>
      <div className="grid stats">
        <Stat label="Requests" value={formatCount(total.requests)} />
        <Stat
          label="Failed"
          value={formatCount(total.failed + total.timedOut)}
          hint={ended === 0 ? undefined : percent((total.failed + total.timedOut) / ended)}
        />
        <Stat
          label="Run time, 90 %"
          value={total.runTime === null ? '–' : formatDuration(total.runTime.p90)}
        />
        <Stat label="Cold starts" value={formatCount(total.coldStarts.count)} />
        <Stat label="Cost" value={formatMoney(total.cost)} />
      </div>
      <div className="grid two">
        {charts.map(({ title, format, series }) => (
          <Card key={title} title={title}>
            <Chart label={title} times={times} series={series} format={format} />
          </Card>
        ))}
      </div>
    </>
  );
}

function seriesOf([label, pick]: ChartSpec['lines'][number], points: readonly Point[]): Series {
  return { label, values: points.map((point) => pick(point) ?? null) };
}
