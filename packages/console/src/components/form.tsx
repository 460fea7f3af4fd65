import { useId } from 'react';
import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes, TextareaHTMLAttributes } from 'react';

/** A label, the control, a hint and what is wrong with the value. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string;
  hint?: ReactNode;
  problem?: string | undefined;
  children: (control: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode;
}) {
  const id = useId();
  const described = hint !== undefined || problem !== undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        ...(described && { 'aria-describedby': `${id}-about` }),
        ...(problem !== undefined && { 'aria-invalid': true as const }),
      })}
      {described && (
        <div id={`${id}-about`}>
          {hint !== undefined && <div className="hint">{hint}</div>}
          {problem !== undefined && <div className="problem">{problem}</div>}
        </div>
      )}
    </div>
  );
}

interface Described {
  label: string;
  hint?: ReactNode;
  problem?: string | undefined;
}

export function TextField({
  label,
  hint,
  problem,
  ...rest
}: Described & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })} problem={problem}>
      {(control) => <input className="input" autoComplete="off" {...rest} {...control} />}
    </Field>
  );
}

export function TextArea({
  label,
  hint,
  problem,
  ...rest
}: Described & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })} problem={problem}>
      {(control) => <textarea className="input" spellCheck={false} {...rest} {...control} />}
    </Field>
  );
}

export function SelectField({
  label,
  hint,
  problem,
  options,
  ...rest
}: Described &
  SelectHTMLAttributes<HTMLSelectElement> & {
    options: readonly (readonly [value: string, text: string])[];
  }) {
  return (
    <Field label={label} {...(hint !== undefined && { hint })} problem={problem}>
      {(control) => (
        <select className="input" {...rest} {...control}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField({
  label,
  hint,
  ...rest
}: { label: string; hint?: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className="check">
      <input type="checkbox" id={id} {...rest} />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && <div className="muted">{hint}</div>}
      </div>
    </div>
  );
}

/** One of a few, side by side. */
export function Segmented<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onChange: (value: T) => void;
}) {
  return (
    <div className="segmented" role="group" aria-label={label}>
      {options.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChange(each)}>
          {text}
        </button>
      ))}
    </div>
  );
}
