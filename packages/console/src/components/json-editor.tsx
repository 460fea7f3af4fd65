import { useRef } from 'react';
import type { KeyboardEvent } from 'react';
import { Button } from './button.tsx';
import { Field } from './form.tsx';
import { jsonProblem } from './json-text.ts';

/** A field for JSON: says where it is wrong, and formats it. */
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
  const place = useRef<HTMLTextAreaElement>(null);
  const problem = jsonProblem(value);
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
  return (
    <div className="stack" style={{ gap: 6 }}>
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
          />
        )}
      </Field>
      <div>
        <Button
          small
          disabled={problem !== undefined}
          onClick={() => onChange(JSON.stringify(JSON.parse(value), null, 2))}
        >
          Format
        </Button>
      </div>
    </div>
  );
}
