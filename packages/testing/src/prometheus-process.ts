import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { createTemporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

export interface PromSample {
  metric: Record<string, string>;
  value: [number, string];
}

/** A real Prometheus that scrapes one server every second. */
export interface PrometheusProcess {
  /** Runs an instant query; throws with Prometheus' own words where it refuses it. */
  query(expression: string): Promise<PromSample[]>;
  /** The names of the alerts that fire now. */
  firing(): Promise<string[]>;
  /** The names of all alerts. */
  alerts(): Promise<string[]>;
  stop(): Promise<void>;
}

export const PROMETHEUS_MISSING =
  spawnSync('prometheus', ['--version']).error !== undefined && 'Prometheus is not installed';

export async function startPrometheus(target: string, rules: string): Promise<PrometheusProcess> {
  const folder = createTemporaryFolder('prometheus', {
    'prometheus.yml': JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['alerts.yml'],
      scrape_configs: [{ job_name: 'berth', static_configs: [{ targets: [new URL(target).host] }] }],
    }),
    'alerts.yml': rules,
  });
  const port = await freePort();
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder.path, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const body = (await response.json()) as { status: string; error?: string; data: T };
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}`);
    return body.data;
  };
  await waitFor('Prometheus answers', async () => {
    if (child.exitCode !== null) throw new Error('Prometheus did not start');
    return get('status/buildinfo').then(
      () => true,
      () => false,
    );
  });
  return {
    query: async (expression) =>
      (await get<{ result: PromSample[] }>(`query?query=${encodeURIComponent(expression)}`)).result,
    firing: async () =>
      (await get<{ alerts: { state: string; labels: Record<string, string> }[] }>('alerts')).alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels }) => labels['alertname'] ?? ''),
    alerts: async () =>
      (await get<{ groups: { rules: { name: string }[] }[] }>('rules?type=alert')).groups.flatMap((group) =>
        group.rules.map(({ name }) => name),
      ),
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      folder.remove();
    },
  };
}
