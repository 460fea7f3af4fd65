import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findClusterPrograms } from '../../packages/testing/src/kubernetes/cluster-programs.ts';
import type { TestCluster } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { HELM, goProgram } from './go-program.ts';

const programs = findClusterPrograms();

export const CHART = fileURLToPath(new URL('../../deploy/helm/berth', import.meta.url));
export const RELEASE = 'berth';
export const helm = await goProgram(HELM.name, HELM.module);
export const kubectl = join('bin' in programs ? programs.bin : '', 'kubectl');

/** The chart in a namespace of the test cluster. */
export interface HelmRelease {
  /** Fails with what the pods say. */
  run(program: string, ...args: string[]): Promise<string>;
  runHelm(...args: string[]): Promise<string>;
  /** What its pods say. */
  explain(): Promise<string>;
}

export function helmRelease({ kubeconfig }: TestCluster, namespace: string): HelmRelease {
  const execute = (program: string, args: readonly string[]): Promise<{ stdout: string }> =>
    promisify(execFile)(program, ['--namespace', namespace, ...args], {
      env: { ...process.env, KUBECONFIG: kubeconfig },
    });
  const explain = async (): Promise<string> => {
    const read = async (...args: string[]): Promise<string> =>
      (await execute(kubectl, args).catch(() => ({ stdout: '' }))).stdout;
    return [
      await read('get', 'pods,pvc', '-o', 'wide'),
      await read('get', 'events'),
      await read('logs', `${RELEASE}-0`, '--tail=30'),
      await read('logs', `${RELEASE}-0`, '--tail=30', '--previous'),
    ].join('\n');
  };
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const { stdout } = await execute(program, args).catch(async (error: { stderr: string }) =>
      assert.fail(`${program} ${args[0]} failed: ${error.stderr}\n${await explain()}`),
    );
    return stdout.trim();
  };
  return { run, runHelm: (...args) => run('path' in helm ? helm.path : '', ...args), explain };
}
