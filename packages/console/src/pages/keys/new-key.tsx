import { useState } from 'react';
import type { ReactNode } from 'react';
import { Command } from '../../components/copy.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { SelectField, TextField } from '../../components/form.tsx';

/** Asks for a new key, and shows it once. */
export function NewKey({
  open,
  onClose,
  title,
  levels,
  create,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  levels: readonly (readonly [string, string])[];
  create: (body: { name: string; access: string; expiresAt: string | null }) => Promise<[string, string][]>;
  /** More fields, for what the key may do. */
  children?: (access: string) => ReactNode;
}) {
  const [name, setName] = useState('');
  const [access, setAccess] = useState(levels[0]?.[0] ?? '');
  const [days, setDays] = useState('');
  const [made, setMade] = useState<[string, string][]>();
  const submit = async (): Promise<void> => {
    const expiresAt = days === '' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
    setMade(await create({ name, access, expiresAt }));
    setName('');
  };
  return (
    <>
      <FormDialog open={open} onClose={onClose} title={title} submit="Create" onSubmit={submit}>
        <TextField label="Name" required value={name} onChange={(event) => setName(event.target.value)} />
        <SelectField
          label="May do"
          value={access}
          onChange={(event) => setAccess(event.target.value)}
          options={levels}
        />
        {children?.(access)}
        <SelectField
          label="Expires"
          value={days}
          onChange={(event) => setDays(event.target.value)}
          options={[
            ['', 'never'],
            ['1', 'in a day'],
            ['30', 'in 30 days'],
            ['365', 'in a year'],
          ]}
        />
      </FormDialog>
      <Dialog
        open={made !== undefined}
        onClose={() => setMade(undefined)}
        title="Copy it now"
        description="It is shown this once and never again."
      >
        {(made ?? []).map(([label, value]) => (
          <div key={label} className="stack" style={{ gap: 4 }}>
            <strong>{label}</strong>
            <Command>{value}</Command>
          </div>
        ))}
      </Dialog>
    </>
  );
}
