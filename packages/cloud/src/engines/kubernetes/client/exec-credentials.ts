import { execFile } from 'node:child_process';
import { dirname, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { BerthError } from '../../../support/errors.ts';

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1024 ** 2;

/** A program that prints credentials, as cloud providers use them. */
export interface ExecConfig {
  apiVersion?: string;
  command: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  provideClusterInfo?: boolean;
}

export interface ExecCredential {
  token?: string;
  clientCertificateData?: string;
  clientKeyData?: string;
  expirationTimestamp?: string;
}

export interface ExecCluster {
  server: string;
  'certificate-authority-data'?: string | undefined;
  'insecure-skip-tls-verify'?: boolean | undefined;
}

/** Runs the program of a kubeconfig's user. A relative path begins at the kubeconfig. */
export async function runExecPlugin(
  { apiVersion = 'client.authentication.k8s.io/v1', command, args, env, provideClusterInfo }: ExecConfig,
  kubeconfig: string,
  cluster: ExecCluster,
): Promise<ExecCredential> {
  const program =
    !command.includes('/') || isAbsolute(command) ? command : join(dirname(kubeconfig), command);
  const info = {
    kind: 'ExecCredential',
    apiVersion,
    spec: { interactive: false, ...(provideClusterInfo === true && { cluster }) },
  };
  try {
    const { stdout } = await promisify(execFile)(program, args ?? [], {
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT_BYTES,
      env: {
        ...process.env,
        ...Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
        KUBERNETES_EXEC_INFO: JSON.stringify(info),
      },
    });
    const { status } = JSON.parse(stdout) as { status?: ExecCredential };
    if (status === undefined || (status.token === undefined && status.clientCertificateData === undefined))
      throw new Error('it printed neither a token nor a certificate');
    return status;
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new BerthError(
      'unavailable',
      `the program ${JSON.stringify(command)} of the kubeconfig gave no credentials: ` +
        `${(stderr?.trim() || message).slice(0, 500)}`,
      { cause: error },
    );
  }
}
