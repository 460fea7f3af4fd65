import { Link } from '@tanstack/react-router';
import { useApi } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { LinkButton } from '../../components/button.tsx';
import { Card, Page } from '../../components/page.tsx';
import { EmptyState, Loaded } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';

export function ServerlessPage() {
  const endpoints = useApi<{ endpoints: Endpoint[] }>('/v2/serverless', { everyMs: 15_000 });
  const { write } = usePermissions();
  return (
    <Page
      title="Serverless"
      description="Endpoints take jobs or HTTP requests and run them on workers that come and go."
      actions={
        write && (
          <LinkButton to="/serverless/new" look="primary">
            New endpoint
          </LinkButton>
        )
      }
    >
      <Card flush>
        <Loaded of={endpoints}>
          {({ endpoints: rows }) => (
            <DataTable
              label="Endpoints"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                { header: 'Name', cell: ({ id, name }) => <Link to={`/serverless/${id}`}>{name}</Link> },
                { header: 'Image', cell: ({ image }) => <span className="mono truncate">{image}</span> },
                { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              ]}
              empty={
                <EmptyState title="No endpoints yet" command="npx berth deploy examples/hello">
                  An endpoint runs your handler for every job. Deploy a folder, or start from an example.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}
