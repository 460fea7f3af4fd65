import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../api/client.ts';
import { useApi } from '../api/queries.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../components/badge.tsx';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { SelectField, TextField } from '../components/form.tsx';
import { formatCount } from '../components/format.ts';
import { Card, Facts, Page } from '../components/page.tsx';
import { EmptyState, ErrorNote, Skeleton } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Ago } from '../components/time.tsx';
import { useUrlState, useUrlText } from '../components/url-state.ts';
import { ACTIONS, RESOURCES } from './audit-words.ts';

interface AuditEntry {
  id: number;
  at: string;
  action: string;
  resource: string;
  resourceId: string;
  accountId: string;
  keyId: string | null;
  keyName: string | null;
  interface: string;
  requestId: string;
  changes: { field: string; from?: unknown; to?: unknown }[];
}
interface AuditPage {
  entries: AuditEntry[];
  pagination: { nextCursor: string | null };
}

export default function AuditPage() {
  const { operator } = usePermissions();
  const [actor, setActor] = useUrlText('actor');
  const [action, setAction] = useUrlState('action');
  const [resource, setResource] = useUrlState('resource');
  const [resourceId, setResourceId] = useUrlText('id');
  const [from, setFrom] = useUrlState('from');
  const [to, setTo] = useUrlState('to');
  const [account, setAccount] = useUrlText('account');
  const [openedId, setOpenedId] = useUrlState('entry');
  const query = {
    actor,
    action,
    resource,
    resourceId,
    account,
    from: instantOf(from),
    to: instantOf(to),
  };
  const log = useInfiniteQuery({
    queryKey: ['/v2/audit', query],
    queryFn: ({ pageParam, signal }) =>
      api<AuditPage>('/v2/audit', { query: { ...query, limit: 200, cursor: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: ({ pagination }) => pagination.nextCursor ?? undefined,
    placeholderData: (previous) => previous,
  });
  const entries = log.data?.pages.flatMap((page) => page.entries) ?? [];
  const listed = entries.find(({ id }) => String(id) === openedId);
  // A link may lead to an entry that is further back: a page begins before its cursor.
  const linked = useApi<AuditPage>('/v2/audit', {
    query: { account, cursor: Number(openedId) + 1, limit: 1 },
    enabled: /^[1-9]\d{0,14}$/.test(openedId) && log.data !== undefined && listed === undefined,
  });
  const opened = listed ?? linked.data?.entries.find(({ id }) => String(id) === openedId);
  return (
    <Page
      title="Audit log"
      description="Who changed what, and when. Values that are secret are named, not shown."
    >
      <Card>
        <div className="grid">
          <TextField
            label="Key id"
            value={actor}
            onChange={(event) => setActor(event.target.value)}
            hint="system: Berth itself"
          />
          <SelectField
            label="Action"
            value={action}
            onChange={(event) => setAction(event.target.value)}
            options={[['', 'any'], ...ACTIONS.map((name) => [name, name] as const)]}
          />
          <SelectField
            label="Kind"
            value={resource}
            onChange={(event) => setResource(event.target.value)}
            options={[['', 'any'], ...RESOURCES.map((name) => [name, name] as const)]}
          />
          <TextField
            label="Resource id"
            value={resourceId}
            onChange={(event) => setResourceId(event.target.value)}
          />
          <TextField
            label="From"
            type="datetime-local"
            value={from}
            onChange={(event) => setFrom(event.target.value)}
          />
          <TextField
            label="Until"
            type="datetime-local"
            value={to}
            onChange={(event) => setTo(event.target.value)}
          />
          {operator && (
            <TextField
              label="Account"
              value={account}
              hint="An id, or all; empty is your own"
              onChange={(event) => setAccount(event.target.value)}
            />
          )}
        </div>
      </Card>
      <Card flush>
        {log.error !== null ? (
          <ErrorNote error={log.error} retry={() => void log.refetch()} />
        ) : log.data === undefined ? (
          <Skeleton />
        ) : (
          <DataTable
            label="Audit log"
            rows={entries}
            rowKey={({ id }) => String(id)}
            columns={[
              { header: 'When', cell: ({ at }) => <Ago at={at} /> },
              { header: 'Action', cell: ({ action: done }) => <Badge tone={toneOf(done)}>{done}</Badge> },
              {
                header: 'What',
                cell: (entry) => (
                  <>
                    {entry.resource} <code>{entry.resourceId}</code>
                  </>
                ),
              },
              { header: 'By', cell: (entry) => entry.keyName ?? entry.keyId ?? 'Berth itself' },
              { header: 'Through', cell: (entry) => entry.interface },
              ...(account === ''
                ? []
                : [{ header: 'Account', cell: (entry: AuditEntry) => <code>{entry.accountId}</code> }]),
              {
                header: '',
                kind: 'actions' as const,
                cell: (entry) => (
                  <Button
                    small
                    variant="quiet"
                    aria-label={`Details of entry ${entry.id}`}
                    onClick={() => setOpenedId(String(entry.id))}
                  >
                    Details
                  </Button>
                ),
              },
            ]}
            empty={<EmptyState title="Nothing is recorded for this" command="npx berth audit" />}
          />
        )}
      </Card>
      <div className="row">
        <span className="muted" role="status">
          {formatCount(entries.length)} entries
        </span>
        {log.hasNextPage && (
          <Button disabled={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Older entries
          </Button>
        )}
      </div>
      <Dialog open={opened !== undefined} onClose={() => setOpenedId('')} title="Entry" shape="side">
        {opened !== undefined && <Details entry={opened} />}
      </Dialog>
    </Page>
  );
}

function Details({ entry }: { entry: AuditEntry }) {
  return (
    <div className="stack lg">
      <Facts
        facts={[
          ['When', new Date(entry.at).toLocaleString()],
          ['Action', entry.action],
          ['What', `${entry.resource} ${entry.resourceId}`],
          ['Key', entry.keyId === null ? 'Berth itself' : `${entry.keyName ?? 'deleted'} (${entry.keyId})`],
          ['Through', entry.interface],
          ['Request', <code>{entry.requestId}</code>],
          ['Account', <code>{entry.accountId}</code>],
        ]}
      />
      {entry.changes.length > 0 && (
        <DataTable
          label="Changes"
          rows={entry.changes}
          rowKey={({ field }) => field}
          columns={[
            { header: 'Field', cell: ({ field }) => field },
            { header: 'Before', cell: ({ from }) => <pre>{valueText(from)}</pre> },
            { header: 'After', cell: ({ to }) => <pre>{valueText(to)}</pre> },
          ]}
        />
      )}
    </div>
  );
}

function valueText(value: unknown): string {
  if (value === undefined) return 'hidden';
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}

function toneOf(action: string): 'good' | 'bad' | 'info' {
  return action === 'create' ? 'good' : action === 'delete' ? 'bad' : 'info';
}

/** What a field for date and time holds is in the time of the reader. */
function instantOf(text: string): string {
  const at = Date.parse(text);
  return Number.isNaN(at) ? '' : new Date(at).toISOString();
}
