import { useEffect, useRef } from 'react';
import type { ReactNode } from 'react';
import { Link, useRouterState } from '@tanstack/react-router';
import { announceTitle } from './announce.ts';

export interface Crumb {
  to: string;
  label: string;
}

/** The frame of a page: its title, what it answers, and what can be done here. */
export function Page({
  title,
  description,
  crumbs = [],
  badge,
  actions,
  children,
}: {
  title: string;
  description?: ReactNode;
  crumbs?: Crumb[];
  badge?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Berth`;
    announceTitle(title);
  }, [title]);
  return (
    <>
      <div className="page-head">
        <div className="stack" style={{ gap: 4 }}>
          {crumbs.length > 0 && (
            <nav className="crumbs" aria-label="Breadcrumb">
              {crumbs.map(({ to, label }) => (
                <span key={to}>
                  <Link to={to}>{label}</Link>
                  {' / '}
                </span>
              ))}
            </nav>
          )}
          <div className="row">
            <h1 style={{ overflowWrap: 'anywhere' }}>{title}</h1>
            {badge}
          </div>
          {description !== undefined && <p className="description">{description}</p>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </div>
      <div className="stack lg">{children}</div>
    </>
  );
}

export function Card({
  title,
  actions,
  children,
  flush = false,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Without inner padding: for tables. */
  flush?: boolean;
}) {
  return (
    <section className="card">
      {(title !== undefined || actions !== undefined) && (
        <header>
          <h2>{title}</h2>
          {actions !== undefined && <div className="row">{actions}</div>}
        </header>
      )}
      {flush ? children : <div className="body">{children}</div>}
    </section>
  );
}

/** Names and values, two columns. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Stat({
  label,
  value,
  hint,
}: {
  label: string;
  value: ReactNode;
  hint?: ReactNode | undefined;
}) {
  return (
    <div className="card stat">
      <div className="label">{label}</div>
      <div className="value">{value}</div>
      {hint !== undefined && <div className="muted">{hint}</div>}
    </div>
  );
}

/** Tabs that are links: each has an address of its own. */
export function LinkTabs({ label, tabs }: { label: string; tabs: { to: string; label: string }[] }) {
  const row = useRef<HTMLElement>(null);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // On a phone the open tab may be beyond the edge.
  useEffect(() => {
    const open = row.current?.querySelector<HTMLElement>('[aria-current="page"]');
    if (open)
      row.current?.scrollTo({ left: open.offsetLeft - (row.current.clientWidth - open.clientWidth) / 2 });
  }, [path]);
  return (
    <nav ref={row} className="tabs" aria-label={label}>
      {tabs.map(({ to, label: text }) => (
        <Link key={to} to={to} activeOptions={{ exact: true, includeSearch: false }}>
          {text}
        </Link>
      ))}
    </nav>
  );
}
