import { useMemo } from 'react';
import { Link } from '@tanstack/react-router';
import { useAllPages } from '../../api/all-pages.ts';
import { useOverview } from '../../api/overview.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Badge } from '../../components/badge.tsx';
import { LinkButton } from '../../components/button.tsx';
import { Card, Page } from '../../components/page.tsx';
import { EmptyState, Loaded } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { useUrlText } from '../../components/url-state.ts';
import { hardwareOf } from './endpoint-words.ts';
import { formatCount, plural } from '../../components/format.ts';

export default function ServerlessPage() {
  const endpoints = useAllPages<Endpoint>('/v2/serverless', 'endpoints', { everyMs: 30_000 });
  const overview = useOverview();
  const { write } = usePermissions();
  const [search, setSearch] = useUrlText('q');
  const active = useMemo(
    () => new Map(overview.data?.active.map((endpoint) => [endpoint.id, endpoint])),
    [overview.data],
  );
  return (
    <Page
      title="Serverless"
      description="Endpoints take jobs or HTTP requests and run them on workers that come and go."
      actions={
        write && (
          <LinkButton to="/serverless/new" variant="primary">
            New endpoint
          </LinkButton>
        )
      }
    >
      <Card flush>
        {((endpoints.data?.length ?? 0) > 5 || search !== '') && (
          <div className="toolbar" style={{ padding: 12 }}>
            <input
              className="input grow"
              type="search"
              aria-label="Search the endpoints"
              placeholder="Name, id or image"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          </div>
        )}
        <Loaded of={endpoints}>
          {(all) => (
            <DataTable
              label="Endpoints"
              rows={all.filter((endpoint) => matches(endpoint, search))}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: 'Name',
                  cell: ({ id, name }) => (
                    <Link to={`/serverless/${id}`} style={{ fontWeight: 600 }}>
                      {name}
                    </Link>
                  ),
                },
                {
                  header: 'Type',
                  cell: ({ type }) => <Badge>{type === 'QUEUE' ? 'queue' : 'load balancer'}</Badge>,
                },
                { header: 'Image', cell: ({ image }) => <div className="mono truncate">{image}</div> },
                {
                  header: 'Hardware',
                  cell: (endpoint) => <span className="nowrap">{hardwareOf(endpoint)}</span>,
                },
                {
                  header: 'Jobs',
                  cell: ({ id, type }) => {
                    const { inQueue = 0, inProgress = 0 } = active.get(id)?.jobs ?? {};
                    return type !== 'QUEUE' || overview.data === undefined ? (
                      '–'
                    ) : (
                      <span className="nowrap">
                        {formatCount(inQueue)} waiting, {formatCount(inProgress)} running
                      </span>
                    );
                  },
                },
                {
                  header: 'Workers',
                  cell: ({ id, workers: { min, max } }) => (
                    <span className="nowrap">
                      {overview.data !== undefined &&
                        `${plural(active.get(id)?.workers.ready ?? 0, 'worker')} of `}
                      {min} to {max}
                    </span>
                  ),
                },
                { header: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              ]}
              empty={
                search === '' ? (
                  <EmptyState title="No endpoints yet" command="npx berth deploy examples/echo">
                    An endpoint runs your handler for every job. Deploy a folder, or start from an example.
                  </EmptyState>
                ) : (
                  <EmptyState title="No endpoint matches" />
                )
              }
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

function matches({ id, name, image }: Endpoint, search: string): boolean {
  const words = search.trim().toLowerCase();
  return words === '' || [id, name, image].some((text) => text.toLowerCase().includes(words));
}
