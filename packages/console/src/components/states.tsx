import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../api/client.ts';
import { Button } from './button.tsx';
import { Command } from './copy.tsx';

/** An error in the server's own words, with the id that finds it in the log. */
export function ErrorNote({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div className="note bad" role="alert">
      <strong>{error.message}</strong>
      {error instanceof ApiError && error.details.length > 0 && (
        <ul>
          {error.details.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {error instanceof ApiError && (
        <span className="small">
          Status {error.status}
          {error.requestId !== undefined && (
            <>
              {' · request '}
              <code>{error.requestId}</code>
            </>
          )}
        </span>
      )}
      {retry !== undefined && (
        <div>
          <Button small onClick={retry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  );
}

/** Nothing is here yet: says the next step, with the exact command. */
export function EmptyState({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
      {command !== undefined && <Command>{command}</Command>}
      {action}
    </div>
  );
}

/** Grey lines in place of what loads. They appear after a moment, so a fast answer does not flicker. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 120);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="stack" aria-busy="true">
      <span className="visually-hidden">Loading</span>
      {shown &&
        Array.from({ length: lines }, (_, index) => (
          <div key={index} className="skeleton" style={{ width: `${92 - ((index * 17) % 40)}%` }} />
        ))}
    </div>
  );
}

/** Loading, failed or there. What was read before stays on screen while it is read again. */
export function Loaded<T>({
  of,
  lines,
  children,
}: {
  of: UseQueryResult<T, Error>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error !== null) return <ErrorNote error={of.error} retry={() => void of.refetch()} />;
  return <Skeleton {...(lines !== undefined && { lines })} />;
}

export function Note({
  tone = 'info',
  children,
}: {
  tone?: 'info' | 'good' | 'warn' | 'bad';
  children: ReactNode;
}) {
  return <div className={`note ${tone}`}>{children}</div>;
}
