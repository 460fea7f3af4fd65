import { useApi, useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import { StatusBadge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Card } from '../../components/page.tsx';
import { EmptyState, Loaded } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { useToasts } from '../../components/toast.tsx';
import type { TabProps } from './tab-props.ts';

interface Delivery {
  id: string;
  jobId: string;
  url: string;
  state: string;
  attempts: number;
  lastStatus?: number | null;
  lastError?: string | null;
  createdAt: string;
}

export default function WebhooksTab({ endpoint: { id } }: TabProps) {
  const deliveries = useApi<{ deliveries: Delivery[] }>(`/v2/${id}/webhooks`, {
    everyMs: 5_000,
  });
  const may = usePermissions();
  const redeliver = useWrite(`/v2/${id}/webhooks`);
  const toasts = useToasts();
  return (
    <Card flush title="Deliveries">
      <Loaded of={deliveries}>
        {(answer) => (
          <DataTable
            label="Webhook deliveries"
            rows={answer.deliveries}
            rowKey={(delivery) => delivery.id}
            columns={[
              { header: 'State', cell: ({ state }) => <StatusBadge status={state} /> },
              { header: 'To', cell: ({ url }) => <div className="mono truncate">{url}</div> },
              { header: 'Job', cell: ({ jobId }) => <code>{jobId}</code> },
              { header: 'Attempts', kind: 'number', cell: ({ attempts }) => attempts },
              {
                header: 'Last answer',
                cell: ({ lastStatus, lastError }) => (
                  <div className="truncate" title={lastError ?? ''}>
                    {lastStatus ?? ''} {lastError ?? ''}
                  </div>
                ),
              },
              { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              {
                header: '',
                kind: 'actions',
                cell: (delivery) =>
                  may.run(id) && (
                    <Button
                      small
                      aria-label={`Redeliver the webhook of job ${delivery.jobId}`}
                      onClick={() =>
                        redeliver
                          .mutateAsync({ path: `/v2/${id}/webhooks/${delivery.id}/redeliver` })
                          .then(() => toasts.done('It is delivered again'), toasts.failed)
                      }
                    >
                      Redeliver
                    </Button>
                  ),
              },
            ]}
            empty={
              <EmptyState
                title="No webhooks yet"
                command={
                  `curl ${location.origin}/v2/${id}/run \\\n` +
                  '  -H "Authorization: Bearer $BERTH_API_KEY" \\\n' +
                  `  -d '{"input": {}, "webhook": "https://example.com/hook"}'`
                }
              >
                A job with a webhook is told to that address when it ends. Deliveries are signed and repeated.
              </EmptyState>
            }
          />
        )}
      </Loaded>
    </Card>
  );
}
