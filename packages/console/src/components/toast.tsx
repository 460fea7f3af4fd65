import { createContext, useCallback, useContext, useMemo, useState } from 'react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/client.ts';

interface Toast {
  id: number;
  tone: 'good' | 'bad';
  text: string;
}

export interface Toasts {
  /** Says shortly that something was done. */
  done(text: string): void;
  /** Says why something was not done, in the server's words. */
  failed(error: unknown): void;
}

const Context = createContext<Toasts>({ done: () => undefined, failed: () => undefined });
const DONE_MS = 4_000;
const FAILED_MS = 12_000;
let nextId = 0;

export function useToasts(): Toasts {
  return useContext(Context);
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const show = useCallback((tone: Toast['tone'], text: string, ms: number) => {
    nextId += 1;
    const id = nextId;
    setToasts((current) => [...current.slice(-3), { id, tone, text }]);
    setTimeout(() => setToasts((current) => current.filter((toast) => toast.id !== id)), ms);
  }, []);
  const value = useMemo<Toasts>(
    () => ({
      done: (text) => show('good', text, DONE_MS),
      failed: (error) => show('bad', wordsOf(error), FAILED_MS),
    }),
    [show],
  );
  return (
    <Context value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, tone, text }) => (
          <div key={id} className={`note ${tone}`}>
            {text}
          </div>
        ))}
      </div>
    </Context>
  );
}

function wordsOf(error: unknown): string {
  if (error instanceof ApiError && error.requestId !== undefined)
    return `${error.message} (request ${error.requestId})`;
  return error instanceof Error ? error.message : String(error);
}
