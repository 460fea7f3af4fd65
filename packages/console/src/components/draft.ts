import { useState } from 'react';

/** Fields that were typed into, each with the value that it had before. */
export type Edits<Fields> = { readonly [Name in keyof Fields]?: { from: Fields[Name]; to: Fields[Name] } };

/** What a form shows: what was typed, and the newest value of all else. */
export function draftOf<Fields extends object>(current: Fields, edits: Edits<Fields>): Fields {
  const typed = Object.entries(edits) as [keyof Fields, { to: Fields[keyof Fields] }][];
  return { ...current, ...Object.fromEntries(typed.map(([name, { to }]) => [name, to])) };
}

/** Fields that were typed into here and changed elsewhere to something else. */
export function conflictsOf<Fields extends object>(
  current: Fields,
  edits: Edits<Fields>,
): (keyof Fields & string)[] {
  return (Object.keys(edits) as (keyof Fields & string)[]).filter((name) => {
    const edit = edits[name];
    return edit !== undefined && current[name] !== edit.from && current[name] !== edit.to;
  });
}

/**
 * A form over something that others may change meanwhile. What was not typed into follows them; what was,
 * stays, and `conflicts` names it.
 */
export function useDraft<Fields extends object>(
  current: Fields,
): {
  draft: Fields;
  conflicts: (keyof Fields & string)[];
  change: (next: Partial<Fields>) => void;
  /** Forgets what was typed: it is saved. */
  reset: () => void;
} {
  const [edits, setEdits] = useState<Edits<Fields>>({});
  return {
    draft: draftOf(current, edits),
    conflicts: conflictsOf(current, edits),
    change: (next) =>
      setEdits((before) => {
        const typed = Object.entries(next) as [keyof Fields, Fields[keyof Fields]][];
        return {
          ...before,
          ...Object.fromEntries(
            typed.map(([name, to]) => [name, { from: before[name]?.from ?? current[name], to }]),
          ),
        };
      }),
    reset: () => setEdits({}),
  };
}
