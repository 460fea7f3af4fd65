import type { ContainerSandbox } from '../domain/placement/container-sandbox.ts';

/** Where workers and pods get what they need to run. */
export interface InstanceSpecSources {
  /** Environment variables with their secret references resolved. */
  resolveEnv(accountId: string, env: Record<string, string>): Promise<Record<string, string>>;
  /**
   * Credentials to pull an image with: the saved ones that are named, or those that the account has for this
   * image.
   */
  credentials(
    accountId: string,
    registryId: string | null,
    image: string,
  ): Promise<{ username: string; password: string } | undefined>;
  /** The URL at which instances in a data center reach this server. */
  serverUrl(dataCenterId: string): Promise<string>;
  /** How containers of a data center are confined, where the operator has changed it. */
  sandbox?(dataCenterId: string): ContainerSandbox | undefined;
}
