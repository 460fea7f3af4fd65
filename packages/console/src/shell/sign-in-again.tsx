import { lazy, Suspense, useEffect, useState } from 'react';
import { onSessionEnded } from '../api/client.ts';

const SessionEndedDialog = lazy(() => import('./session-ended-dialog.tsx'));
const PRELOAD_AFTER_MS = 3_000;

/** The session ended while a page was open: signing in again keeps the page, and what was typed into it. */
export function SignInAgain() {
  const [ended, setEnded] = useState(false);
  useEffect(() => onSessionEnded(() => setEnded(true)), []);
  // Not with the first page, and before it is needed: then the server may be away, or another version.
  useEffect(() => {
    const timer = setTimeout(() => void import('./session-ended-dialog.tsx'), PRELOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!ended) return null;
  return (
    <Suspense>
      <SessionEndedDialog onClose={() => setEnded(false)} />
    </Suspense>
  );
}
