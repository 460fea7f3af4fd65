import { useEffect, useState } from 'react';
import { Outlet, useRouter, useRouterState } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import { useLiveUpdates } from '../api/events.ts';
import { useSession } from '../api/session.ts';
import { Button } from '../components/button.tsx';
import { SignInAgain } from './sign-in-again.tsx';
import { Logo } from './logo.tsx';
import { Navigated } from './navigated.tsx';
import { Navigation } from './navigation.tsx';
import { applyTheme, storedTheme } from './theme.ts';
import type { Theme } from './theme.ts';

/** What is around every page: navigation, who is signed in, and whether the server answers. */
export function Shell() {
  const [open, setOpen] = useState(false);
  const connected = useLiveUpdates();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Navigated />
      {!connected && (
        <div className="banner" role="alert">
          Berth does not answer. What you see may be out of date; it is updated as soon as Berth is back.
        </div>
      )}
      <header className="topbar">
        <Button aria-label="Menu" aria-expanded={open} onClick={() => setOpen(!open)}>
          ☰
        </Button>
        <Brand />
      </header>
      <div className="shell">
        <aside className="sidebar" aria-label="Berth" data-open={open}>
          <Brand />
          <Navigation onNavigate={() => setOpen(false)} />
          <Foot />
        </aside>
        <main id="main" className="main" tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <SignInAgain />
    </>
  );
}

function Brand() {
  return (
    <div className="brand">
      <Logo size={26} />
      Berth
    </div>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

function Foot() {
  const session = useSession().data;
  const client = useQueryClient();
  const router = useRouter();
  const [theme, setTheme] = useState(storedTheme);
  const change = (): void => {
    applyTheme(NEXT_THEME[theme]);
    setTheme(NEXT_THEME[theme]);
  };
  const signOut = async (): Promise<void> => {
    await send('/logout', { method: 'POST' });
    client.clear();
    await router.navigate({ to: '/login' });
  };
  return (
    <div className="foot">
      <a className="nav-link" href="/docs/">
        Documentation
      </a>
      {session !== undefined && (
        <div style={{ padding: '0 8px' }}>
          <div className="truncate" title={session.accountName}>
            {session.accountName}
          </div>
          <div className="muted truncate" title={session.key.name}>
            {session.key.name}
            {session.key.access !== 'ALL' && ` · ${session.key.access.toLowerCase().replace('_', '-')}`}
          </div>
        </div>
      )}
      <div className="row">
        <Button small variant="quiet" onClick={change} aria-label={`Theme: ${theme}. Change it`}>
          {theme === 'system' ? '◐' : theme === 'light' ? '☀' : '☾'} {theme}
        </Button>
        <Button small variant="quiet" onClick={() => void signOut()}>
          Sign out
        </Button>
      </div>
    </div>
  );
}
