import { useEffect, useRef, useState } from 'react';
import { useRouterState } from '@tanstack/react-router';
import { announceTitle, useAnnouncedTitle } from '../components/announce.ts';

/**
 * What a browser does when it loads a page, for a page that is opened within the console: the keyboard begins
 * at its content, and screen readers say its title. Another filter on the same page is no other page.
 * It stands before the pages, so that its effect runs before the one that tells the new title.
 */
export function Navigated() {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const title = useAnnouncedTitle();
  const last = useRef(path);
  const [moved, setMoved] = useState(false);
  useEffect(() => {
    if (path === last.current) return;
    last.current = path;
    announceTitle('');
    setMoved(true);
    document.getElementById('main')?.focus({ preventScroll: true });
  }, [path]);
  return (
    <div className="visually-hidden" aria-live="polite">
      {moved && title !== '' ? `Page: ${title}` : ''}
    </div>
  );
}
