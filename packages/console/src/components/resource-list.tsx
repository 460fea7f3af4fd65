import type { ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import { formatCount } from './format.ts';
import { Menu } from './menu.tsx';
import type { MenuEntry } from './menu.tsx';
import { Card } from './page.tsx';
import { Loaded } from './states.tsx';
import { DataTable } from './table.tsx';
import type { Column } from './table.tsx';
import { useUrlText } from './url-state.ts';

/** From this many rows on, a list has a search field. */
const SEARCH_FROM = 6;

/** A list of resources: searched by text, with the actions of each row. One shape for every kind. */
export function ResourceList<Row>({
  label,
  title,
  of,
  columns,
  rowKey,
  rowName,
  searchText,
  rowActions,
  filters,
  headerActions,
  empty,
  searchParam = 'q',
}: {
  /** What is listed, as a plural. */
  label: string;
  title?: string;
  of: UseQueryResult<Row[], Error>;
  columns: Column<Row>[];
  rowKey: (row: Row) => string;
  /** The name of a row, for the label of its menu. */
  rowName: (row: Row) => string;
  /** Where the search looks. */
  searchText: (row: Row) => string;
  rowActions?: ((row: Row) => MenuEntry[]) | undefined;
  filters?: ReactNode;
  headerActions?: ReactNode;
  empty: ReactNode;
  /** The name in the address, where a page has several lists. */
  searchParam?: string;
}) {
  const [wanted, setWanted] = useUrlText(searchParam);
  const all: Column<Row>[] =
    rowActions === undefined
      ? columns
      : [
          ...columns,
          {
            header: '',
            kind: 'actions',
            cell: (row) => <Menu label={`Actions of ${rowName(row)}`} entries={rowActions(row)} />,
          },
        ];
  return (
    <Card
      flush
      {...(title !== undefined && { title })}
      {...(headerActions !== undefined && { actions: headerActions })}
    >
      <Loaded of={of}>
        {(rows) => {
          const found = matching(rows, wanted, searchText);
          return (
            <>
              {(rows.length >= SEARCH_FROM || wanted !== '' || filters !== undefined) && (
                <div className="toolbar list-toolbar">
                  <input
                    className="input grow"
                    type="search"
                    aria-label={`Search ${label.toLowerCase()}`}
                    placeholder="Search"
                    value={wanted}
                    onChange={(event) => setWanted(event.target.value)}
                  />
                  {filters}
                  <span className="muted" role="status">
                    {found.length === rows.length
                      ? formatCount(rows.length)
                      : `${formatCount(found.length)} of ${formatCount(rows.length)}`}
                  </span>
                </div>
              )}
              <DataTable
                label={label}
                rows={found}
                columns={all}
                rowKey={rowKey}
                empty={
                  rows.length === 0 ? empty : <p className="empty">Nothing matches. Change the search.</p>
                }
              />
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

function matching<Row>(rows: Row[], wanted: string, searchText: (row: Row) => string): Row[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = searchText(row).toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
