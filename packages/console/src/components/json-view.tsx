import { CopyButton } from './copy.tsx';
import { prettyJson } from './json-text.ts';

/** A value as it was sent, as plain text. */
export function JsonView({ label, value }: { label: string; value: unknown }) {
  const text = prettyJson(value);
  return (
    <section className="stack" style={{ gap: 4 }}>
      <div className="row between">
        <h3>{label}</h3>
        <CopyButton text={text} label={`Copy: ${label}`} />
      </div>
      <pre
        className="note"
        tabIndex={0}
        aria-label={label}
        style={{ display: 'block', maxHeight: '40vh', overflow: 'auto' }}
      >
        {text}
      </pre>
    </section>
  );
}
