import { useState } from 'react';
import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { ErrorNote } from './states.tsx';

/** A form in a dialog. What was typed stays when the server says no. */
export function FormDialog({
  open,
  onClose,
  title,
  description,
  submit,
  shape,
  onSubmit,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  /** The text of the button. */
  submit: string;
  shape?: 'plain' | 'wide' | 'side';
  onSubmit: () => Promise<unknown>;
  children: ReactNode;
}) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={title}
      {...(description !== undefined && { description })}
      {...(shape !== undefined && { shape })}
    >
      <SubmitForm submit={submit} onSubmit={onSubmit} onDone={onClose} onCancel={onClose}>
        {children}
      </SubmitForm>
    </Dialog>
  );
}

/** Fields, what the server says about them, and a button. */
export function SubmitForm({
  submit,
  onSubmit,
  onDone,
  onCancel,
  disabled = false,
  children,
}: {
  submit: string;
  onSubmit: () => Promise<unknown>;
  onDone?: () => void;
  onCancel?: () => void;
  disabled?: boolean;
  children: ReactNode;
}) {
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
      onDone?.();
    } catch (cause) {
      setError(cause as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {children}
      {error !== undefined && <ErrorNote error={error} />}
      <div className="row end">
        {onCancel !== undefined && <Button onClick={onCancel}>Cancel</Button>}
        <Button type="submit" variant="primary" disabled={busy || disabled}>
          {submit}
        </Button>
      </div>
    </form>
  );
}
