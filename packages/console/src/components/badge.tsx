import type { ReactNode } from 'react';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'idle';

const TONES: Record<string, Tone> = {
  RUNNING: 'good',
  COMPLETED: 'good',
  IDLE: 'idle',
  READY: 'good',
  DELIVERED: 'good',
  IN_PROGRESS: 'info',
  IN_QUEUE: 'warn',
  INITIALIZING: 'info',
  STARTING: 'info',
  PENDING: 'warn',
  THROTTLED: 'warn',
  UNHEALTHY: 'bad',
  FAILED: 'bad',
  TIMED_OUT: 'bad',
  CANCELLED: 'idle',
  EXITED: 'idle',
  STOPPED: 'idle',
  TERMINATED: 'idle',
  ERROR: 'bad',
};

export function Badge({ tone = 'idle', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${tone === 'idle' ? '' : tone}`}>{children}</span>;
}

/** The word for a state, in its colour. */
export function StatusBadge({ status }: { status: string }) {
  const text = status.toLowerCase().replaceAll('_', ' ');
  return <Badge tone={TONES[status.toUpperCase()] ?? 'idle'}>{text}</Badge>;
}
