import { useApi } from '../../api/queries.ts';
import type { ErrorGroup } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { formatCount } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

/** Failed jobs by what went wrong. Without any there is nothing to show. */
export function ErrorGroups({
  endpointId,
  chosen,
  onChoose,
}: {
  endpointId: string;
  chosen: string | undefined;
  onChoose: (fingerprint: string | undefined) => void;
}) {
  const groups =
    useApi<{ groups: ErrorGroup[] }>(`/v2/serverless/${endpointId}/errors`, { everyMs: 30_000 }).data
      ?.groups ?? [];
  if (groups.length === 0) return null;
  return (
    <Card flush title="Errors, by what went wrong">
      <DataTable
        label="Errors"
        rows={groups}
        rowKey={({ fingerprint }) => fingerprint}
        height="40vh"
        columns={[
          { header: 'Jobs', kind: 'number', cell: ({ count }) => formatCount(count) },
          {
            header: 'Error',
            cell: ({ type, message }) => (
              <div className="mono truncate" style={{ maxWidth: 640 }} title={message}>
                {type}: {message}
              </div>
            ),
          },
          { header: 'First', cell: ({ firstSeen }) => <Ago at={firstSeen} /> },
          { header: 'Last', cell: ({ lastSeen }) => <Ago at={lastSeen} /> },
          {
            header: '',
            kind: 'actions',
            cell: ({ fingerprint }) => (
              <Button
                small
                aria-pressed={chosen === fingerprint}
                aria-label={`${chosen === fingerprint ? 'Shown' : 'Show jobs'} of error ${fingerprint}`}
                onClick={() => onChoose(chosen === fingerprint ? undefined : fingerprint)}
              >
                {chosen === fingerprint ? 'Shown' : 'Show jobs'}
              </Button>
            ),
          },
        ]}
      />
    </Card>
  );
}
