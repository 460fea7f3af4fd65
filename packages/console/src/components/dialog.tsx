import { useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { Dialog as Radix } from 'radix-ui';
import { Button } from './button.tsx';
import { TextField } from './form.tsx';
import { ErrorNote } from './states.tsx';

export function Dialog({
  open,
  onClose,
  title,
  description,
  shape = 'plain',
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  description?: ReactNode;
  /** `side` opens along the right edge, for details beside a list. */
  shape?: 'plain' | 'wide' | 'side';
  children: ReactNode;
}) {
  const opener = useRef<Element>(null);
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="overlay" />
        <Radix.Content
          className={`dialog ${shape === 'plain' ? '' : shape}`}
          onOpenAutoFocus={() => (opener.current = focusedControl())}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            returnFocus(opener.current);
          }}
          {...(description === undefined && { 'aria-describedby': undefined })}
        >
          <div className="stack">
            <div className="row between" style={{ flexWrap: 'nowrap' }}>
              <Radix.Title asChild>
                <h2 style={{ overflowWrap: 'anywhere' }}>{title}</h2>
              </Radix.Title>
              <Radix.Close asChild>
                <Button small variant="quiet" aria-label="Close">
                  ✕
                </Button>
              </Radix.Close>
            </div>
            {description !== undefined && (
              <Radix.Description asChild>
                <div className="muted">{description}</div>
              </Radix.Description>
            )}
            {children}
          </div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** What has the focus; of a menu that closes, the button that opened it. */
function focusedControl(): Element | null {
  const focused = document.activeElement;
  const menu = focused?.closest('[role=menu]') ?? null;
  return menu === null ? focused : document.getElementById(menu.getAttribute('aria-labelledby') ?? '');
}

/** The keyboard goes on where it was, or at the page where that is gone, such as the row of what was deleted. */
function returnFocus(to: Element | null): void {
  const target = to?.isConnected === true ? to : document.getElementById('main');
  if (target instanceof HTMLElement) target.focus();
}

/** Asks before something is lost, and says what. With `word`, the reader has to type it. */
export function ConfirmDialog({
  open,
  onClose,
  title,
  lost,
  action,
  word,
  danger = true,
  onConfirm,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What is lost, and what stays. */
  lost: ReactNode;
  /** The text of the button. */
  action: string;
  word?: string;
  danger?: boolean;
  onConfirm: () => Promise<unknown>;
}) {
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const confirm = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      setTyped('');
      onClose();
    } catch (cause) {
      setError(cause as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onClose={onClose} title={title} description={lost}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        {word !== undefined && (
          <TextField
            label={`Type ${word} to go on`}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
        {error !== undefined && <ErrorNote error={error} />}
        <div className="row end">
          <Button onClick={onClose}>Keep it</Button>
          <Button
            type="submit"
            variant={danger ? 'danger' : 'primary'}
            disabled={busy || (word !== undefined && typed !== word)}
          >
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
