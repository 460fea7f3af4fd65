import { memo, useRef } from 'react';
import type { ReactNode } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';

export interface Column<Row> {
  header: ReactNode;
  cell: (row: Row) => ReactNode;
  /** `number` aligns right, `actions` holds buttons. */
  kind?: 'number' | 'actions';
}

const VIRTUAL_FROM = 100;
const ROW_HEIGHT = 41;
/** Rows above and below those in view. With twelve a frame took a fifth longer, most of it to paint them. */
const OVERSCAN = 4;

/** A table. With many rows only those in view are in the document, and it scrolls by itself. */
export function DataTable<Row>({
  label,
  rows,
  columns,
  rowKey,
  empty,
  height = '65vh',
}: {
  label: string;
  rows: readonly Row[];
  columns: Column<Row>[];
  rowKey: (row: Row) => string;
  empty?: ReactNode;
  height?: string;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const isVirtual = rows.length > VIRTUAL_FROM;
  const virtual = useVirtualizer({
    count: isVirtual ? rows.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
  });
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  const items = isVirtual ? virtual.getVirtualItems() : undefined;
  const before = items?.[0]?.start ?? 0;
  const after = items === undefined ? 0 : virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const shown = items === undefined ? rows : items.flatMap(({ index }) => rows[index] ?? []);
  return (
    <div
      className="table-scroll"
      ref={scroller}
      {...(isVirtual && { style: { height } })}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <table className="table" aria-label={label} {...(isVirtual && { 'aria-rowcount': rows.length })}>
        <thead>
          <tr>
            {columns.map(({ header, kind }, index) => (
              <th key={index} scope="col" className={kind}>
                {header === '' ? <span className="visually-hidden">Actions</span> : header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={before} span={columns.length} />
          {shown.map((row) => (
            <TableRow key={rowKey(row)} row={row} columns={columns} />
          ))}
          <Spacer height={after} span={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

/** While the table scrolls, only rows that come into view are rendered: the others are the same as before. */
const TableRow = memo(function TableRow<Row>({ row, columns }: { row: Row; columns: Column<Row>[] }) {
  return (
    <tr>
      {columns.map(({ cell, kind }, index) => (
        <td key={index} className={kind}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: { row: Row; columns: Column<Row>[] }) => ReactNode;

function Spacer({ height, span }: { height: number; span: number }) {
  return height <= 0 ? null : (
    <tr className="spacer" aria-hidden="true">
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}
