import type { StartPhases } from '../../api/types.ts';
import { formatDuration } from '../../components/format.ts';
import { phasesOf } from './start-phases.ts';

/** The parts of a cold start, as bars. */
export function Phases({ phases }: { phases: StartPhases | null | undefined }) {
  const parts = phasesOf(phases);
  if (parts.length === 0) return <p className="muted">Nothing is known about its start.</p>;
  const longest = Math.max(1, ...parts.map(({ took = 0 }) => took));
  return (
    <dl className="facts" style={{ gridTemplateColumns: 'max-content 1fr max-content' }}>
      {parts.map(({ label, took }) => (
        <div key={label} style={{ display: 'contents' }}>
          <dt>{label}</dt>
          <dd style={{ alignSelf: 'center' }}>
            <div className="meter">
              <span style={{ width: `${((took ?? 0) / longest) * 100}%` }} />
            </div>
          </dd>
          <dd>{took === undefined ? 'under way' : formatDuration(took)}</dd>
        </div>
      ))}
    </dl>
  );
}
