import { CheckField, TextField } from '../../components/form.tsx';
import { Note } from '../../components/states.tsx';

type Scalar = string | number | boolean;

/**
 * The input as fields, made from what was sent before: text, numbers and switches. The rest is for the JSON
 * editor.
 */
export function InputForm({ body, onChange }: { body: string; onChange: (body: string) => void }) {
  const parsed = parse(body);
  if (parsed === undefined)
    return <Note tone="warn">The body is not an object with an input; mend it as JSON first.</Note>;
  const { request, input } = parsed;
  const set = (name: string, value: Scalar): void =>
    onChange(JSON.stringify({ ...request, input: { ...input, [name]: value } }, null, 2));
  const fields = Object.entries(input);
  if (fields.length === 0)
    return <Note>The input has no fields yet. Send one as JSON; the form follows from it.</Note>;
  return (
    <>
      {fields.map(([name, value]) =>
        typeof value === 'boolean' ? (
          <CheckField
            key={name}
            label={name}
            checked={value}
            onChange={(event) => set(name, event.target.checked)}
          />
        ) : typeof value === 'number' ? (
          <TextField
            key={name}
            label={name}
            type="number"
            step="any"
            value={value}
            onChange={(event) => set(name, Number(event.target.value))}
          />
        ) : typeof value === 'string' ? (
          <TextField
            key={name}
            label={name}
            value={value}
            onChange={(event) => set(name, event.target.value)}
          />
        ) : (
          <TextField key={name} label={name} value={JSON.stringify(value)} readOnly hint="Edit it as JSON." />
        ),
      )}
    </>
  );
}

function parse(
  body: string,
): { request: Record<string, unknown>; input: Record<string, unknown> } | undefined {
  try {
    const request = JSON.parse(body) as Record<string, unknown>;
    const input = request['input'];
    return typeof input === 'object' && input !== null && !Array.isArray(input)
      ? { request, input: input as Record<string, unknown> }
      : undefined;
  } catch {
    return undefined;
  }
}
