import { useCallback } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';

/**
 * A value that is part of the address, so that a link to the page shows the same. The fallback is not
 * written.
 */
export function useUrlState(name: string, fallback = ''): [value: string, set: (value: string) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const value = search[name];
  const set = useCallback(
    (next: string) => {
      void navigate({
        to: '.',
        search: (current: Record<string, unknown>) => {
          const { [name]: _, ...rest } = current;
          return next === fallback ? rest : { ...rest, [name]: next };
        },
        replace: true,
      } as never);
    },
    [name, fallback, navigate],
  );
  return [value === undefined ? fallback : String(value), set];
}
