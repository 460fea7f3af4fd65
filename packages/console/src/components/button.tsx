import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Link } from '@tanstack/react-router';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: 'primary' | 'danger' | 'quiet' | 'plain';
  small?: boolean;
}

export function Button({ look = 'plain', small = false, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${look === 'plain' ? '' : look} ${small ? 'small' : ''} ${className}`}
    />
  );
}

/** A link that looks like a button. */
export function LinkButton({
  to,
  search,
  look = 'plain',
  small = false,
  children,
}: {
  to: string;
  /** What stands behind the question mark. */
  search?: Record<string, string>;
  look?: ButtonProps['look'];
  small?: boolean;
  children: ReactNode;
}) {
  return (
    <Link
      to={to}
      search={search ?? {}}
      className={`button ${look === 'plain' ? '' : look} ${small ? 'small' : ''}`}
    >
      {children}
    </Link>
  );
}
