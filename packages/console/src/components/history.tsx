import { useMemo } from 'react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { useApi } from '../api/queries.ts';
import { Chart } from './chart.tsx';
import type { Series } from './chart.tsx';
import { Segmented } from './form.tsx';
import { formatBytes, formatMoney } from './format.ts';
import { Card } from './page.tsx';
import { EmptyState, Loaded } from './states.tsx';
import { useUrlState } from './url-state.ts';

export type Sampled = { average: number; max: number } | null;

/** What every history has: the use of hardware. */
export interface HardwarePoint {
  cpu: Sampled;
  memory: Sampled;
  gpu: Sampled;
  gpuMemory: Sampled;
}

export interface UsagePoint extends HardwarePoint {
  cost: number;
}

export interface ChartSpec<Point> {
  title: string;
  format: (value: number) => string;
  lines: [label: string, pick: (point: Point) => number | null | undefined][];
  /** Left out if there is nothing to show. */
  optional?: boolean;
}

interface History<Point> {
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

export const percent = (share: number): string => `${Math.round(share * 100)} %`;
export const decimal = (value: number): string => value.toFixed(2);

export const HARDWARE_CHARTS: ChartSpec<HardwarePoint>[] = [
  { title: 'CPU cores', format: decimal, lines: [['used', ({ cpu }) => cpu?.average]], optional: true },
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
];

export const USAGE_CHARTS: ChartSpec<UsagePoint>[] = [
  ...HARDWARE_CHARTS,
  { title: 'Cost', format: formatMoney, lines: [['spent', ({ cost }) => cost]] },
];

/** The history at an address of the API, as charts over a range that is part of the page's address. */
export function HistoryCharts<Point>({
  path,
  charts,
  children,
}: {
  path: string;
  charts: ChartSpec<Point>[];
  /** What stands above the charts. */
  children?: (total: Point) => ReactNode;
}) {
  const [range, setRange] = useUrlState('range', '6h');
  return (
    <>
      <Segmented
        label="Range"
        value={range as (typeof RANGES)[number][0]}
        options={RANGES}
        onChange={setRange}
      />
      <ChartsOfRange path={path} range={range} charts={charts}>
        {children}
      </ChartsOfRange>
    </>
  );
}

/** The charts of one range. */
export function ChartsOfRange<Point>({
  path,
  range,
  charts,
  children,
}: {
  path: string;
  range: string;
  charts: ChartSpec<Point>[];
  children?: ((total: Point) => ReactNode) | undefined;
}) {
  const history = useApi<History<Point>>(path, { query: { range }, everyMs: 30_000, keepPrevious: true });
  if (isUnknown(history.error)) return <EmptyState title="This server keeps no history" />;
  return (
    <Loaded of={history}>
      {(data) => (
        <>
          {children?.(data.total)}
          <Charts points={data.points} charts={charts} />
        </>
      )}
    </Loaded>
  );
}

/** A server of an earlier version does not have the address. */
function isUnknown(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404;
}

function Charts<Point>({ points, charts }: { points: History<Point>['points']; charts: ChartSpec<Point>[] }) {
  const times = useMemo(() => points.map(({ at }) => Date.parse(at) / 1000), [points]);
  const drawn = useMemo(
    () =>
      charts
        .map((spec) => ({
          ...spec,
          series: spec.lines.map(
            ([label, pick]): Series => ({ label, values: points.map((point) => pick(point) ?? null) }),
          ),
        }))
        .filter(
          ({ optional, series }) =>
            optional !== true || series.some(({ values }) => values.some((value) => value !== null)),
        ),
    [points, charts],
  );
  if (drawn.length === 0)
    return <p className="muted">Nothing was measured in this time. The first minute takes a while.</p>;
  const isUnmeasured =
    charts.some(({ optional }) => optional === true) && drawn.every(({ optional }) => optional !== true);
  return (
    <div className="grid two">
      {isUnmeasured && (
        <p className="muted">
          CPU and memory were not measured in this time. At a start, the first minute takes a while.
        </p>
      )}
      {drawn.map(({ title, format, series }) => (
        <Card key={title} title={title}>
          <Chart label={title} times={times} series={series} format={format} />
        </Card>
      ))}
    </div>
  );
}
