import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Link } from '@tanstack/react-router';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: 'primary' | 'danger' | 'quiet' | 'plain';
  small?: boolean;
}

export function Button({ variant = 'plain', small = false, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${variant === 'plain' ? '' : variant} ${small ? 'small' : ''} ${className}`}
    />
  );
}

/** A link that looks like a button. */
export function LinkButton({
  to,
  search,
  variant = 'plain',
  small = false,
  children,
}: {
  to: string;
  /** What stands behind the question mark. */
  search?: Record<string, string>;
  variant?: ButtonProps['variant'];
  small?: boolean;
  children: ReactNode;
}) {
  return (
    <Link
      to={to}
      search={search ?? {}}
      className={`button ${variant === 'plain' ? '' : variant} ${small ? 'small' : ''}`}
    >
      {children}
    </Link>
  );
}
