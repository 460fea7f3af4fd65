import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { BerthError } from '../../../support/errors.ts';
import type { ClusterAccess, ClusterCredentials } from './cluster-access.ts';
import { type ExecConfig, type ExecCredential, runExecPlugin } from './exec-credentials.ts';

interface Cluster {
  server: string;
  'certificate-authority'?: string;
  'certificate-authority-data'?: string;
  'insecure-skip-tls-verify'?: boolean;
  'tls-server-name'?: string;
  'proxy-url'?: string;
}

interface User {
  token?: string;
  tokenFile?: string;
  username?: string;
  password?: string;
  'client-certificate'?: string;
  'client-certificate-data'?: string;
  'client-key'?: string;
  'client-key-data'?: string;
  exec?: ExecConfig;
  'auth-provider'?: unknown;
}

interface Kubeconfig {
  clusters?: { name: string; cluster: Cluster }[];
  users?: { name: string; user?: User | null }[];
  contexts?: { name: string; context: { cluster: string; user: string; namespace?: string } }[];
  'current-context'?: string;
}

/** Tokens in files are replaced before they expire. */
const TOKEN_FILE_TTL_MS = 60_000;
/** Credentials are renewed this long before they expire. */
const EXPIRY_MARGIN_MS = 60_000;

/** The cluster of a kubeconfig's context; default: its current one. */
export async function readKubeconfig(path: string, contextName?: string): Promise<ClusterAccess> {
  const config = await parseFile(path);
  const name = contextName ?? config['current-context'];
  const context = config.contexts?.find((entry) => entry.name === name)?.context;
  if (context === undefined)
    throw unusable(
      path,
      name === undefined || name === ''
        ? 'it has no current context; name one with `context`'
        : `it has no context ${JSON.stringify(name)} (it has: ` +
            `${(config.contexts ?? []).map((entry) => entry.name).join(', ') || 'none'})`,
    );
  const cluster = config.clusters?.find((entry) => entry.name === context.cluster)?.cluster;
  if (cluster === undefined || !URL.canParse(cluster.server))
    throw unusable(path, `it has no usable cluster ${JSON.stringify(context.cluster)}`);
  const user = config.users?.find((entry) => entry.name === context.user)?.user ?? {};
  if (user['auth-provider'] !== undefined)
    throw unusable(path, 'auth-provider is not supported (Kubernetes removed it in 1.26): use exec');
  if (cluster['proxy-url'] !== undefined) throw unusable(path, 'proxy-url is not supported');
  return new KubeconfigAccess(path, cluster, user, context.namespace);
}

async function parseFile(path: string): Promise<Kubeconfig> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw unusable(path, (error as Error).message);
  }
  const { parse } = await import('yaml');
  try {
    return (parse(text) ?? {}) as Kubeconfig;
  } catch (error) {
    throw unusable(path, `it is not valid YAML: ${(error as Error).message.split('\n')[0] ?? ''}`);
  }
}

function unusable(path: string, reason: string): BerthError {
  return new BerthError('unavailable', `the kubeconfig ${path} cannot be used: ${reason}`);
}

class KubeconfigAccess implements ClusterAccess {
  readonly server: string;
  readonly namespace: string | undefined;
  readonly #path: string;
  readonly #cluster: Cluster;
  readonly #user: User;
  #cached: { credentials: Promise<ClusterCredentials>; until: number } | undefined;

  constructor(path: string, cluster: Cluster, user: User, namespace: string | undefined) {
    this.server = cluster.server;
    this.namespace = namespace;
    this.#path = path;
    this.#cluster = cluster;
    this.#user = user;
  }

  forgetCredentials(): void {
    this.#cached = undefined;
  }

  credentials(): Promise<ClusterCredentials> {
    if (this.#cached !== undefined && Date.now() < this.#cached.until) return this.#cached.credentials;
    const read = this.#read();
    const cached = { credentials: read.then(({ credentials }) => credentials), until: Infinity };
    this.#cached = cached;
    read.then(
      ({ until }) => (cached.until = until),
      () => (cached.until = 0),
    );
    return cached.credentials;
  }

  async #read(): Promise<{ credentials: ClusterCredentials; until: number }> {
    const cluster = this.#cluster;
    const user = this.#user;
    const issued = user.exec === undefined ? undefined : await this.#runPlugin(user.exec);
    const expiry = Date.parse(issued?.expirationTimestamp ?? '');
    const tokenFile = user.tokenFile === undefined ? undefined : await this.#file(user.tokenFile);
    const token = issued?.token ?? tokenFile?.toString().trim() ?? user.token;
    return {
      until: Number.isNaN(expiry)
        ? user.tokenFile === undefined
          ? Infinity
          : Date.now() + TOKEN_FILE_TTL_MS
        : expiry - EXPIRY_MARGIN_MS,
      credentials: {
        authorization:
          token !== undefined
            ? `Bearer ${token}`
            : user.username !== undefined
              ? `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`
              : undefined,
        tls: {
          ca: await this.#data(cluster['certificate-authority-data'], cluster['certificate-authority']),
          cert:
            issued?.clientCertificateData ??
            (await this.#data(user['client-certificate-data'], user['client-certificate'])),
          key: issued?.clientKeyData ?? (await this.#data(user['client-key-data'], user['client-key'])),
          servername: cluster['tls-server-name'],
          rejectUnauthorized: cluster['insecure-skip-tls-verify'] !== true,
        },
      },
    };
  }

  async #runPlugin(exec: ExecConfig): Promise<ExecCredential> {
    const ca = await this.#data(
      this.#cluster['certificate-authority-data'],
      this.#cluster['certificate-authority'],
    );
    return runExecPlugin(exec, this.#path, {
      server: this.server,
      'certificate-authority-data': ca?.toString('base64'),
      'insecure-skip-tls-verify': this.#cluster['insecure-skip-tls-verify'],
    });
  }

  async #data(inline: string | undefined, file: string | undefined): Promise<Buffer | undefined> {
    if (inline !== undefined) return Buffer.from(inline, 'base64');
    return file === undefined ? undefined : this.#file(file);
  }

  /** Relative paths begin at the kubeconfig. */
  async #file(path: string): Promise<Buffer> {
    try {
      return await readFile(resolve(dirname(this.#path), path));
    } catch (error) {
      throw unusable(this.#path, (error as Error).message);
    }
  }
}
