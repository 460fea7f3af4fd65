import { useState } from 'react';
import { Button } from './button.tsx';

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button small variant="quiet" aria-label={done ? 'Copied' : label} onClick={() => void copy()}>
      {done ? 'Copied' : 'Copy'}
    </Button>
  );
}

/** Without https, browsers have no clipboard for scripts; a hidden field does it. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

/** A command for a terminal, with a button that copies it. */
export function Command({ children }: { children: string }) {
  return (
    <div className="command">
      <code tabIndex={0}>{children}</code>
      <CopyButton text={children} label={`Copy: ${children.split('\n')[0]}`} />
    </div>
  );
}
