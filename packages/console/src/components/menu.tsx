import { useState } from 'react';
import type { ReactNode } from 'react';
import { DropdownMenu } from 'radix-ui';
import { Button } from './button.tsx';

export interface MenuEntry {
  label: string;
  onSelect: () => void;
  danger?: boolean;
}

/**
 * A button that opens a list of actions. Without entries there is no button. The list is set up when it is first
 * opened: in a table every row has one, and almost none is used.
 */
export function Menu({
  label,
  trigger = '⋯',
  entries,
}: {
  label: string;
  trigger?: ReactNode;
  entries: MenuEntry[];
}) {
  const [used, setUsed] = useState(false);
  if (entries.length === 0) return null;
  if (!used)
    return (
      <Button
        small
        variant="quiet"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={false}
        onClick={() => setUsed(true)}
        onKeyDown={({ key }) => key === 'ArrowDown' && setUsed(true)}
      >
        {trigger}
      </Button>
    );
  return (
    <DropdownMenu.Root defaultOpen>
      <DropdownMenu.Trigger asChild>
        <Button small variant="quiet" aria-label={label}>
          {trigger}
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4}>
          {entries.map(({ label: text, onSelect, danger = false }) => (
            <DropdownMenu.Item key={text} className={danger ? 'danger' : ''} onSelect={onSelect}>
              {text}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
