import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import type { JobTracing } from '../domain/tracing.ts';
import type { AppContext } from './app-context.ts';
import type { Storage } from './storage.ts';

const DEFAULT_DELAY_MS = 5_000;

/** OpenTelemetry traces. */
export interface Traces {
  tracing: JobTracing;
  expose(registry: Registry): void;
  close(): Promise<void>;
}

/** Undefined where no receiver is configured. The code is loaded only where there is one. */
export async function createTraces(
  { config, log, clock, events }: AppContext,
  { store }: Storage,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Traces | undefined> {
  const url = tracesUrl(config.traces.endpoint, env);
  if (url === undefined) return undefined;
  const [{ SpanExporter }, { JobTraces }, { exposeTraces }] = await Promise.all([
    import('../telemetry/traces/span-exporter.ts'),
    import('../telemetry/traces/job-traces.ts'),
    import('../telemetry/traces/trace-metrics.ts'),
  ]);
  const exporter = new SpanExporter({
    url,
    headers: keyValues(env['OTEL_EXPORTER_OTLP_TRACES_HEADERS'] ?? env['OTEL_EXPORTER_OTLP_HEADERS']),
    resource: {
      'service.name': env['OTEL_SERVICE_NAME'] ?? 'berth',
      'service.instance.id': store.server,
      'host.name': hostname(),
      ...keyValues(env['OTEL_RESOURCE_ATTRIBUTES']),
    },
    delayMs: Number(env['OTEL_BSP_SCHEDULE_DELAY']) || DEFAULT_DELAY_MS,
    log,
  });
  const traces = new JobTraces({
    store: store.jobs,
    clock,
    ratio: config.traces.percent / 100,
    record: (span) => exporter.add(span),
    onError: (error) => log.debug({ err: error }, 'the context of a trace could not be read'),
  });
  traces.subscribe(events);
  log.info({ url }, 'traces are sent');
  return {
    tracing: traces,
    expose: (registry) => exposeTraces(registry, exporter.counts),
    close: () => exporter.close(),
  };
}

/** The setting, else the standard variables: the one for traces is the whole address. */
function tracesUrl(setting: string, env: NodeJS.ProcessEnv): string | undefined {
  if (env['OTEL_SDK_DISABLED'] === 'true' && setting === '') return undefined;
  const base = setting || env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const whole = setting === '' ? env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] : undefined;
  if (whole !== undefined && whole !== '') return whole;
  return base === undefined || base === '' ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`;
}

/** `name=value,name=value`, percent-encoded. */
function keyValues(text = ''): Record<string, string> {
  return Object.fromEntries(
    text
      .split(',')
      .map((pair) => pair.split('='))
      .filter(([name = '', ...value]) => name.trim() !== '' && value.length > 0)
      .map(([name = '', ...value]) => [name.trim(), decode(value.join('=').trim())]),
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
