import { byteSizeType, enumType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** The log of Berth, and the output of instances that is kept. */
export const logSettings = {
  'log.level': defineSetting({
    type: enumType(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    description:
      'The lowest level that is logged. Use debug or trace to find a fault, and warn for a short log.',
  }),
  'log.format': defineSetting({
    type: enumType(['auto', 'json', 'text']),
    default: 'auto',
    description:
      'json: one object per line, for log collectors. text: for people. auto: text on a terminal, ' +
      'otherwise json.',
  }),
  'instanceLog.size': defineSetting({
    type: byteSizeType(100_000),
    default: 16_000_000,
    description:
      'How much of the output of one pod or worker of the process engine is kept. Beyond that, the ' +
      'oldest lines are dropped, and the log says how many.',
  }),
  'instanceLog.rate': defineSetting({
    type: byteSizeType(10_000),
    default: 4_000_000,
    description:
      'How much output of one pod or worker of the process engine is logged per second, after a ' +
      'burst of instanceLog.size. Beyond that, the oldest lines are dropped, and the log says how ' +
      'many.',
  }),
};
