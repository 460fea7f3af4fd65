import { Note } from './states.tsx';

/** Somebody else has changed what is being edited here. */
export function ConflictNote({
  fields,
  current,
  labels = {},
}: {
  fields: readonly string[];
  current: object;
  /** What the fields are called on screen. */
  labels?: Readonly<Record<string, string>>;
}) {
  if (fields.length === 0) return null;
  const values = current as Record<string, unknown>;
  return (
    <Note tone="warn">
      <strong>Changed elsewhere while you typed</strong>
      <ul>
        {fields.map((name) => (
          <li key={name}>
            {labels[name] ?? name}: now <code>{String(values[name])}</code>
          </li>
        ))}
      </ul>
      Saving replaces that with what you typed.
    </Note>
  );
}
