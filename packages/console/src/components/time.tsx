import { useEffect, useState } from 'react';
import { formatAge } from './format.ts';

/** How long ago, kept up to date; the exact time on hover. */
export function Ago({ at }: { at: string | number | null | undefined }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5_000);
    return () => clearInterval(timer);
  }, []);
  if (at === null || at === undefined) return <span className="muted">never</span>;
  const time = new Date(at);
  return (
    <time className="nowrap" dateTime={time.toISOString()} title={time.toLocaleString()}>
      {formatAge(now - time.getTime())}
    </time>
  );
}
