import { Note } from './states.tsx';

/** Somebody else has changed what is being edited here. */
export function ConflictNote({ fields, current }: { fields: readonly string[]; current: object }) {
  if (fields.length === 0) return null;
  const values = current as Record<string, unknown>;
  return (
    <Note tone="warn">
      <strong>Changed elsewhere while you typed</strong>
      <ul>
        {fields.map((name) => (
          <li key={name}>
            {name}: now <code>{String(values[name])}</code>
          </li>
        ))}
      </ul>
      Saving replaces that with what you typed.
    </Note>
  );
}
