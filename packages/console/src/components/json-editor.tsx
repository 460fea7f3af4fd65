import { useMemo, useRef } from 'react';
import type { ClipboardEvent, KeyboardEvent } from 'react';
import { Button } from './button.tsx';
import { formatBytes } from './format.ts';
import { Field } from './form.tsx';
import { jsonProblem } from './json-text.ts';

/** A browser freezes on a text field with megabytes in it: from here on, only the beginning is shown. */
const MAX_EDITED = 200_000;
const SHOWN_OF_LARGE = 2_000;

/** A field for JSON: says where it is wrong, and formats it. Takes a file of any size too. */
export function JsonEditor({
  label,
  value,
  onChange,
  rows = 12,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  rows?: number;
}) {
  const file = useRef<HTMLInputElement>(null);
  const problem = useMemo(() => jsonProblem(value), [value]);
  const isLarge = value.length > MAX_EDITED;
  return (
    <div className="stack" style={{ gap: 6 }}>
      {isLarge ? (
        <LargeText label={label} value={value} problem={problem} />
      ) : (
        <JsonField label={label} value={value} problem={problem} rows={rows} onChange={onChange} />
      )}
      <div className="row">
        {isLarge ? (
          <Button small onClick={() => onChange('{}')}>
            Clear
          </Button>
        ) : (
          <Button
            small
            disabled={problem !== undefined}
            onClick={() => onChange(JSON.stringify(JSON.parse(value), null, 2))}
          >
            Format
          </Button>
        )}
        <input
          ref={file}
          type="file"
          hidden
          aria-label="File with JSON"
          onChange={({ target }) => {
            void target.files?.[0]?.text().then(onChange);
            target.value = '';
          }}
        />
        <Button small onClick={() => file.current?.click()}>
          From a file
        </Button>
      </div>
    </div>
  );
}

function JsonField({
  label,
  value,
  problem,
  rows,
  onChange,
}: {
  label: string;
  value: string;
  problem: string | undefined;
  rows: number;
  onChange: (value: string) => void;
}) {
  const place = useRef<HTMLTextAreaElement>(null);
  const keyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter keeps the indentation; Tab stays for moving on, as everywhere.
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return;
    const { selectionStart: at, selectionEnd: end } = event.currentTarget;
    const before = value.slice(0, at);
    const indent = /[ \t]*/.exec(before.slice(before.lastIndexOf('\n') + 1))?.[0] ?? '';
    const deeper = /[[{]\s*$/.test(before) ? '  ' : '';
    event.preventDefault();
    const text = `\n${indent}${deeper}`;
    onChange(before + text + value.slice(end));
    requestAnimationFrame(() => place.current?.setSelectionRange(at + text.length, at + text.length));
  };
  const paste = (event: ClipboardEvent<HTMLTextAreaElement>): void => {
    const text = event.clipboardData.getData('text/plain');
    if (text.length <= MAX_EDITED) return;
    const { selectionStart: at, selectionEnd: end } = event.currentTarget;
    event.preventDefault();
    onChange(value.slice(0, at) + text + value.slice(end));
  };
  return (
    <Field label={label} problem={problem}>
      {(control) => (
        <textarea
          {...control}
          ref={place}
          className="input"
          rows={rows}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={keyDown}
          onPaste={paste}
        />
      )}
    </Field>
  );
}

function LargeText({ label, value, problem }: { label: string; value: string; problem: string | undefined }) {
  return (
    <div className="field">
      <strong>
        {label}: {formatBytes(value.length)}
      </strong>
      <pre className="note" tabIndex={0} aria-label={`Beginning of ${label}`}>
        {value.slice(0, SHOWN_OF_LARGE)} …
      </pre>
      <div className="hint">It is sent as it is; it is too large to be edited here.</div>
      {problem !== undefined && <div className="problem">{problem}</div>}
    </div>
  );
}
