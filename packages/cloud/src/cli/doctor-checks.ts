import { resolve } from 'node:path';
import { checkEnvironment, type EngineCheck } from '../engines/engine-check.ts';
import { formatBytes } from '../support/byte-size.ts';
import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';
import { loadConfig } from '../support/config/load-config.ts';
import { runMachineChecks } from '../engines/machine-checks.ts';
import type { ApiClient } from './api-client.ts';
import { checkCertificateFiles, checkServedCertificate } from './certificate-check.ts';
import { connect } from './connect.ts';
import { CliError } from './cli.errors.ts';
import { dataFolder } from './local-server.ts';

/** The checks of `berth doctor`, ordered so that a failure explains those after it. */
export async function runDoctorChecks(
  call: { options: { data: string | undefined }; env: Environment },
  engines: readonly EngineCheck[],
): Promise<CheckResult[]> {
  const folder = resolve(dataFolder(call.options.data, call.env));
  const local = [
    ...(await runMachineChecks(folder, await configuredEnvironment(call.env), engines)),
    ...(await checkCertificateFiles(call.env)),
  ];
  let client: ApiClient;
  try {
    client = await connect(call);
  } catch (error) {
    return [...local, { check: 'server', ok: false, ...explain(error) }];
  }
  const health = await checkServer(client, 'server', '/healthz', 'look at its log');
  if (!health.ok) return [...local, health];
  return [
    ...local,
    health,
    ...(await checkServedCertificate(client.url)),
    await checkServer(client, 'ready', '/readyz', 'look at its log: a part that it needs does not answer'),
    await checkKey(client),
    ...(await checkServerGpus(client)),
    ...(await checkBackups(client)),
    ...(await checkRetention(client)),
    ...(await checkImages(client)),
  ];
}

/** With the settings of the configuration file. If it cannot be read, another check says why. */
async function configuredEnvironment(env: Environment): Promise<Environment> {
  try {
    return checkEnvironment(env, (await loadConfig({ env })).config);
  } catch {
    return env;
  }
}

/**
 * What the server offers: its settings may be others than those that this command sees. Only an operator's key may
 * see it.
 */
async function checkServerGpus(client: ApiClient): Promise<CheckResult[]> {
  try {
    const { rows } = await client.list<{
      id: string;
      gpus: { id: string; total: number; virtual: boolean }[];
    }>('/v2/system', 'dataCenters');
    const gpus = rows.flatMap((dataCenter) =>
      dataCenter.gpus.map(
        ({ id, total, virtual }) => `${total} x ${id}${virtual ? ' (virtual)' : ''} in ${dataCenter.id}`,
      ),
    );
    return gpus.length === 0 ? [] : [{ check: 'gpus of the server', ok: true, found: gpus.join(', ') }];
  } catch {
    return [];
  }
}

/** Only an operator's key may see how scheduled backups went. */
async function checkBackups(client: ApiClient): Promise<CheckResult[]> {
  try {
    const { target, lastAt, error } = await client.get<{
      target: string;
      lastAt: string | null;
      error: string | null;
    }>('/v2/backup/status');
    const check = 'backups';
    if (target === '')
      return [{ check, ok: true, found: 'none are scheduled; set backup.target to have them made' }];
    if (error !== null)
      return [{ check, ok: false, found: `the last one failed: ${error}`, remedy: `check ${target}` }];
    return [
      { check, ok: true, found: `${target}, ${lastAt === null ? 'none yet' : `the last one at ${lastAt}`}` },
    ];
  } catch {
    return [];
  }
}

/** For how long ended jobs and logs of the account are kept. */
async function checkRetention(client: ApiClient): Promise<CheckResult[]> {
  try {
    const { limits } = await client.get<{ limits: { name: string; limit: number | null }[] }>(
      '/v2/account/limits',
    );
    const hours = (name: string, otherwise: string): string => {
      const limit = limits.find((one) => one.name === name)?.limit ?? null;
      return limit === null ? otherwise : `${limit} h`;
    };
    const jobs = hours('jobHours', 'as each endpoint and request says (default: 30 minutes)');
    const logs = hours('logHours', 'a week');
    return [{ check: 'retention', ok: true, found: `ended jobs: ${jobs}; logs: ${logs}` }];
  } catch {
    return [];
  }
}

/** The deployed folders that nothing runs any more. */
async function checkImages(client: ApiClient): Promise<CheckResult[]> {
  try {
    const { rows } = await client.list<{ size: number; endpoints: string[] }>('/v2/images', 'images');
    const sizeOf = (images: typeof rows): string =>
      `${images.length} (${formatBytes(images.reduce((sum, { size }) => sum + size, 0))})`;
    const unused = rows.filter(({ endpoints }) => endpoints.length === 0);
    return [
      {
        check: 'images',
        ok: true,
        found:
          `deployed folders: ${sizeOf(rows)}; run by no endpoint: ` +
          `${sizeOf(unused)}${unused.length > 0 ? ', "berth image prune" deletes what nothing uses' : ''}; ` +
          'pulled images and Python environments go when nothing names them and they are old',
      },
    ];
  } catch {
    return [];
  }
}

async function checkServer(
  client: ApiClient,
  check: string,
  path: string,
  remedy: string,
): Promise<CheckResult> {
  try {
    const { ok, status } = await client.send('GET', path);
    return { check, ok, found: `${client.url}${path} answers ${status}`, ...(ok ? {} : { remedy }) };
  } catch (error) {
    return { check, ok: false, ...explain(error) };
  }
}

/** 403 means that the key is valid but may not list keys. */
async function checkKey(client: ApiClient): Promise<CheckResult> {
  const check = 'key';
  try {
    const { ok, status } = await client.send('GET', '/v2/account/api-keys');
    if (ok) return { check, ok, found: `the key from ${client.keyOrigin} is accepted` };
    if (status === 403)
      return { check, ok: true, found: `the key from ${client.keyOrigin} is accepted, with narrow access` };
    if (status === 401)
      return {
        check,
        ok,
        found: client.hasKey ? `the key from ${client.keyOrigin} is refused` : client.keyOrigin,
        remedy: 'set BERTH_API_KEY to a key of this server',
      };
    return { check, ok, found: `the server answers ${status}`, remedy: 'look at its log' };
  } catch (error) {
    return { check, ok: false, ...explain(error) };
  }
}

/** Berth's own errors already say what to do. */
function explain(error: unknown): { found: string } {
  if (error instanceof CliError) return { found: error.message };
  return { found: error instanceof Error ? error.message : String(error) };
}
