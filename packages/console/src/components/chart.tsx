import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  label: string;
  values: (number | null)[];
}

/** Lines or stacked bars over time. The table beside it, or its description, says the same in words. */
export function Chart({
  label,
  times,
  series,
  format,
  kind = 'lines',
  height = 220,
}: {
  /** What it shows, for those who do not see it. */
  label: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  format: (value: number) => string;
  kind?: 'lines' | 'bars';
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const theme = useThemeChanges();
  useEffect(() => {
    const element = place.current;
    if (element === null || times.length === 0) return;
    const chart = new uPlot(
      chartOptions(element, series, format, kind, height),
      chartData(times, series, kind),
      element,
    );
    const resized = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      chart.destroy();
    };
  }, [times, series, format, kind, height, theme]);
  return <div ref={place} className="chart" role="img" aria-label={label} />;
}

/** Counts changes of the theme: colours are read when a chart is drawn. */
function useThemeChanges(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const changed = (): void => setChanges((count) => count + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    const chosen = new MutationObserver(changed);
    system.addEventListener('change', changed);
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', changed);
      chosen.disconnect();
    };
  }, []);
  return changes;
}

const DAY_S = 86_400;
/** So wide are times such as 11:45pm, with space between. */
const X_LABEL_PX = 64;

function chartOptions(
  element: HTMLElement,
  series: Series[],
  format: (value: number) => string,
  kind: 'lines' | 'bars',
  height: number,
): uPlot.Options {
  const color = (name: string): string => resolvedColor(element, name);
  const axis = {
    stroke: color('--text-3'),
    grid: { stroke: color('--border'), width: 1 },
    ticks: { show: false },
  };
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] });
  return {
    width: element.clientWidth,
    height,
    cursor: { drag: { x: false, y: false } },
    scales: {
      // A single day has no length of its own.
      ...(kind === 'bars' && {
        x: {
          range: (_chart: uPlot, low: number, high: number) =>
            [low - DAY_S, high + DAY_S] as [number, number],
        },
      }),
      y: { range: (_chart, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, space: X_LABEL_PX },
      { ...axis, size: 64, values: (_chart, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map(({ label, values }, index): uPlot.Series => {
        const stroke = color(`--chart-${(index % 6) + 1}`);
        return {
          label,
          stroke,
          width: kind === 'bars' ? 0 : 2,
          points: { show: kind === 'lines' && values.length < 3 },
          ...(kind === 'bars' && bars !== undefined && { fill: stroke, paths: bars }),
          // A stack holds sums; the reader wants the part.
          value: (_chart, _shown, _series, at) => (at === null ? '–' : format(values[at] ?? 0)),
        };
      }),
    ],
  };
}

/** A canvas needs the colour itself, not the pair for both themes. */
function resolvedColor(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}

/** Bars are stacked: each holds the sum of those before it, and the tallest is drawn first. */
function chartData(times: number[], series: Series[], kind: 'lines' | 'bars'): uPlot.AlignedData {
  if (kind === 'lines') return [times, ...series.map(({ values }) => values)];
  const sums = series.map((_, index) =>
    times.map((_time, at) => series.slice(index).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)),
  );
  return [times, ...sums];
}
