import { useCallback, useEffect, useRef, useState } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';

/**
 * A value that is part of the address, so that a link to the page shows the same. The fallback is not
 * written.
 */
export function useUrlState(name: string, fallback = ''): [value: string, set: (value: string) => void] {
  return useSearchValue(name, fallback);
}

function useSearchValue(
  name: string,
  fallback: string,
): [value: string, set: (value: string) => Promise<void>] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const value = search[name];
  const set = useCallback(
    (next: string) =>
      navigate({
        to: '.',
        search: (current: Record<string, unknown>) => {
          const { [name]: _, ...rest } = current;
          return next === fallback ? rest : { ...rest, [name]: next };
        },
        replace: true,
      } as never),
    [name, fallback, navigate],
  );
  return [value === undefined ? fallback : String(value), set];
}

/** One of a few values as part of the address. The first is the fallback, also for what is none of them. */
export function useUrlChoice<T extends string>(
  name: string,
  choices: readonly [T, ...T[]],
): [value: T, set: (value: T) => void] {
  const [fallback] = choices;
  const [value, set] = useUrlState(name, fallback);
  return [choices.find((choice) => choice === value) ?? fallback, set];
}

/**
 * Text of a field as part of the address. The field has a state of its own: the address follows a moment
 * later, and a field that waited for it would lose what is typed fast.
 */
export function useUrlText(name: string): [text: string, set: (text: string) => void] {
  const [value, setValue] = useSearchValue(name, '');
  const [text, setText] = useState(value);
  const writing = useRef(0);
  useEffect(() => {
    // A link changed the address, not the field.
    if (writing.current === 0) setText(value);
  }, [value]);
  const set = useCallback(
    (next: string) => {
      setText(next);
      writing.current += 1;
      void setValue(next).finally(() => (writing.current -= 1));
    },
    [setValue],
  );
  return [text, set];
}
