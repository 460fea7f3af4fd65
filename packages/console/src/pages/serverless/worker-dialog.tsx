import { useEffect, useMemo, useState } from 'react';
import { useApi } from '../../api/queries.ts';
import type { Worker } from '../../api/types.ts';
import { Chart } from '../../components/chart.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Segmented } from '../../components/form.tsx';
import { formatBytes } from '../../components/format.ts';
import { ChartsOfRange, decimal, HARDWARE_CHARTS } from '../../components/history.tsx';
import { Facts } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { useUrlChoice } from '../../components/url-state.ts';
import { Phases } from './phases.tsx';

interface WorkerMetrics {
  at: string;
  busy: boolean;
  vcpuCount: number;
  cpu: number | null;
  memoryBytes: number | null;
  gpus: { util: number; memoryUtil: number }[];
}

const EVERY_MS = 2_000;
/** Ten minutes. */
const MAX_SAMPLES = 300;
/** The history of a worker is kept for two days. */
const RANGES = [
  ['live', 'Live'],
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['24h', '1 day'],
  ['48h', '2 days'],
] as const;
const RANGE_NAMES = ['1h', 'live', '6h', '24h', '48h'] as const;

/** One worker: what it uses, and how it started. */
export function WorkerDialog({
  endpointId,
  worker,
  onClose,
}: {
  endpointId: string;
  worker: Worker | undefined;
  onClose: () => void;
}) {
  return (
    <Dialog open={worker !== undefined} onClose={onClose} title={`Worker ${worker?.id ?? ''}`} shape="side">
      {worker !== undefined && (
        <div className="stack lg">
          <WorkerUse key={worker.id} endpointId={endpointId} workerId={worker.id} />
          <section className="stack">
            <h3>How it started</h3>
            <Phases phases={worker.phases} />
          </section>
          <p className="muted">Image: {worker.image}</p>
        </div>
      )}
    </Dialog>
  );
}

function WorkerUse({ endpointId, workerId }: { endpointId: string; workerId: string }) {
  const metrics = useApi<WorkerMetrics>(`/v2/serverless/${endpointId}/workers/${workerId}/metrics`, {
    everyMs: EVERY_MS,
  });
  const [range, setRange] = useUrlChoice('range', RANGE_NAMES);
  const samples = useSamples(metrics.data);
  return (
    <section className="stack">
      <h3>What it uses</h3>
      <Loaded of={metrics}>
        {({ busy, cpu, vcpuCount, memoryBytes, gpus }) => (
          <Facts
            facts={[
              ['Now', busy ? 'runs a job' : 'waits for a job'],
              ['CPU', cpu === null ? '–' : `${decimal(cpu)} of ${vcpuCount}`],
              ['Memory', memoryBytes === null ? '–' : formatBytes(memoryBytes)],
              ...gpus.map(({ util, memoryUtil }, index): [string, string] => [
                `GPU ${index}`,
                `${Math.round(util)} % busy, ${Math.round(memoryUtil)} % of its memory`,
              ]),
            ]}
          />
        )}
      </Loaded>
      <Segmented label="Range" value={range} options={RANGES} onChange={setRange} />
      {range === 'live' ? (
        <LiveCharts samples={samples} />
      ) : (
        <ChartsOfRange
          path={`/v2/serverless/${endpointId}/workers/${workerId}/history`}
          range={range}
          charts={HARDWARE_CHARTS}
        />
      )}
    </section>
  );
}

function LiveCharts({ samples }: { samples: readonly WorkerMetrics[] }) {
  const charts = useMemo(
    () => ({
      times: samples.map(({ at }) => Date.parse(at) / 1000),
      cpu: [{ label: 'CPUs', values: samples.map(({ cpu }) => cpu) }],
      memory: [{ label: 'memory', values: samples.map(({ memoryBytes }) => memoryBytes) }],
    }),
    [samples],
  );
  return (
    <>
      <Chart label="CPUs in use" times={charts.times} series={charts.cpu} format={decimal} height={140} />
      <Chart
        label="Memory in use"
        times={charts.times}
        series={charts.memory}
        format={formatBytes}
        height={140}
      />
    </>
  );
}

/** What was measured while the dialog is open. */
function useSamples(latest: WorkerMetrics | undefined): readonly WorkerMetrics[] {
  const [samples, setSamples] = useState<readonly WorkerMetrics[]>([]);
  useEffect(() => {
    if (latest !== undefined) setSamples((before) => [...before, latest].slice(-MAX_SAMPLES));
  }, [latest]);
  return samples;
}
