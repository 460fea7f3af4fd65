import { DEFAULT_LOG_TAIL, LOG_TAIL } from '../../domain/limits.ts';
import { UsageError } from '../cli.errors.ts';
import type { Option } from '../command-definition.ts';
import { parseCount } from './deploy-options.ts';

export const logTailOption = {
  kind: 'text',
  value: 'N',
  description:
    `How many of the last lines to begin with, at most ${LOG_TAIL.maximum}. Default: ` +
    `${DEFAULT_LOG_TAIL}.`,
} as const satisfies Option;

export function parseLogTail(text: string | undefined): number {
  const tail = parseCount('tail', text, 0) ?? DEFAULT_LOG_TAIL;
  if (tail > LOG_TAIL.maximum)
    throw new UsageError(`--tail is ${tail}; allowed: at most ${LOG_TAIL.maximum}`);
  return tail;
}
