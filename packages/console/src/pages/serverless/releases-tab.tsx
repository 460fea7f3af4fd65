import { useState } from 'react';
import { useApi, useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Release, ReleaseList } from '../../api/types.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { plural } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { Loaded, Note } from '../../components/states.tsx';
import { Ago } from '../../components/time.tsx';
import { useToasts } from '../../components/toast.tsx';
import type { TabProps } from './tab-props.ts';

export default function ReleasesTab({ endpoint: { id } }: TabProps) {
  const releases = useApi<ReleaseList>(`/v2/serverless/${id}/releases`, { everyMs: 5_000 });
  const { write } = usePermissions();
  const rollback = useWrite(`/v2/serverless/${id}`);
  const toasts = useToasts();
  const [chosen, setChosen] = useState<Release>();
  return (
    <Loaded of={releases}>
      {({ releases: all, endpointVersion, rollout }) => (
        <>
          {rollout.inProgress && (
            <Note>
              <strong>
                Release {endpointVersion} is rolled out: {rollout.workersOnLatest} of{' '}
                {plural(rollout.workersTotal, 'worker')}
              </strong>
              <div
                className="meter"
                role="progressbar"
                aria-label="Rollout"
                aria-valuenow={rollout.percentOnLatest}
                aria-valuemin={0}
                aria-valuemax={100}
              >
                <span style={{ width: `${rollout.percentOnLatest}%` }} />
              </div>
            </Note>
          )}
          {all.map((release) => (
            <Card
              key={release.id}
              title={
                <span className="row">
                  Release {release.version ?? '–'}
                  {release.version === endpointVersion && <Badge tone="good">current</Badge>}
                </span>
              }
              actions={
                <>
                  <span className="muted">
                    {plural(release.workerCount, 'worker')} · <Ago at={release.createdAt} />
                  </span>
                  {write && release.version !== endpointVersion && (
                    <Button small onClick={() => setChosen(release)}>
                      Roll back to {release.version}
                    </Button>
                  )}
                </>
              }
            >
              <Diff release={release} />
            </Card>
          ))}
          <ConfirmDialog
            open={chosen !== undefined}
            onClose={() => setChosen(undefined)}
            title={`Roll back to release ${chosen?.version ?? ''}?`}
            lost={
              'A new release gets the configuration of that one. Workers of the current release end their ' +
              'jobs and are replaced. Nothing is deleted.'
            }
            action="Roll back"
            danger={false}
            onConfirm={async () => {
              await rollback.mutateAsync({
                path: `/v2/serverless/${id}/releases/${chosen?.version ?? 0}/rollback`,
              });
              toasts.done(`Rolled back to release ${chosen?.version ?? ''}`);
            }}
          />
        </>
      )}
    </Loaded>
  );
}

function Diff({ release: { diff, version } }: { release: Release }) {
  if (diff.length === 0)
    return (
      <p className="muted">
        {version === 0 ? 'The first release.' : 'Nothing in the configuration changed.'}
      </p>
    );
  return (
    <div className="stack">
      {diff.map(({ field, old, new: next }) => (
        <div key={field}>
          <h3>{field}</h3>
          {old === null && next === null ? (
            <p className="muted">Changed. Its values may be secret and are not shown.</p>
          ) : (
            <>
              <pre style={{ color: 'var(--bad)' }}>− {JSON.stringify(old)}</pre>
              <pre style={{ color: 'var(--good)' }}>+ {JSON.stringify(next)}</pre>
            </>
          )}
        </div>
      ))}
    </div>
  );
}
