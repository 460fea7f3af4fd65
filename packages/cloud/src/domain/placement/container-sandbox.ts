/** How the containers of a data center are confined, beyond what holds everywhere. */
export interface ContainerSandbox {
  /** The OCI runtime, such as runsc (gVisor) or kata; default: the daemon's own. */
  runtime?: string;
  /** Nothing starts unless the daemon maps root in a container to another user. */
  requireUserNamespaces?: boolean;
  /** Linux capabilities in addition to the default set. */
  capabilities?: readonly string[];
  /** Processes and threads in one container. */
  pids?: number;
}

/**
 * The capabilities of every container: what package managers, servers on low ports, sshd and programs that
 * change their user need. Of Docker's own set, making devices (MKNOD), raw packets (NET_RAW) and changing
 * capabilities (SETFCAP, SETPCAP) are left out.
 */
export const DEFAULT_CONTAINER_CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETGID',
  'SETUID',
  'SYS_CHROOT',
] as const;

/** Above what programs for machine learning use, below what a machine has. */
export const CONTAINER_PIDS = 8192;
/** How many processes and threads all instances of an account have at most that run as its user. */
export const ACCOUNT_PIDS = 16_384;
