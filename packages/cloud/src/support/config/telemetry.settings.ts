import { wholeNumberType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** What is recorded for people and programs that watch. */
export const telemetrySettings = {
  'history.days': defineSetting({
    type: wholeNumberType(1, 400),
    default: 30,
    description:
      'How many days the history of endpoints and pods is kept, by hour. By minute it is kept for ' +
      'two days. See docs/monitoring.md.',
  }),
};
