import { urlType, wholeNumberType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** What is recorded for people and programs that watch. */
export const telemetrySettings = {
  'history.days': defineSetting({
    type: wholeNumberType(1, 400),
    default: 30,
    description:
      'How many days the hourly history of endpoints and pods is kept. The history by minute is kept ' +
      'for two days. See docs/monitoring.md.',
  }),
  'traces.endpoint': defineSetting({
    type: urlType(),
    default: '',
    description:
      'The OpenTelemetry receiver that traces are sent to, as OTLP over HTTP in JSON; /v1/traces is ' +
      'added to the address. Without it there are no traces, unless OTEL_EXPORTER_OTLP_ENDPOINT is set. ' +
      'See docs/monitoring.md.',
  }),
  'traces.percent': defineSetting({
    type: wholeNumberType(0, 100),
    default: 100,
    description:
      'The percentage of traces that are recorded, of those that begin at Berth. A request that ' +
      'belongs to a trace of its caller is recorded if the caller records it.',
  }),
};
