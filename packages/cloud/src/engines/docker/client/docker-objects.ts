/** The fields of the daemon's objects that are used here, named as in its API. */

export interface HostConfig {
  NetworkMode?: string;
  PortBindings?: Record<string, { HostIp: string; HostPort: string }[]>;
  Mounts?: { Type: 'bind'; Source: string; Target: string; ReadOnly?: boolean }[];
  NanoCpus?: number;
  Memory?: number;
  MemorySwap?: number;
  ShmSize?: number;
  StorageOpt?: Record<string, string>;
  Runtime?: string;
  Privileged?: boolean;
  SecurityOpt?: string[];
  CapDrop?: string[];
  CapAdd?: string[];
  PidsLimit?: number;
  DeviceRequests?: { Driver: string; DeviceIDs: string[]; Capabilities: string[][] }[];
  Init?: boolean;
  RestartPolicy?: { Name: string };
  ExtraHosts?: string[];
  LogConfig?: { Type: string; Config: Record<string, string> };
}

/** To create a container. */
export interface ContainerOptions {
  Image: string;
  Hostname?: string;
  Entrypoint?: string[];
  Cmd?: string[];
  Env?: string[];
  Labels?: Record<string, string>;
  ExposedPorts?: Record<string, object>;
  NetworkingConfig?: {
    EndpointsConfig: Record<string, { IPAMConfig?: { IPv4Address: string }; Aliases?: string[] }>;
  };
  HostConfig?: HostConfig;
}

export interface ListedContainer {
  Id: string;
  State: string;
  Labels: Record<string, string>;
}

export interface InspectedContainer {
  Id: string;
  Name: string;
  /** The program that it runs. */
  Path: string;
  State: {
    Status: string;
    Running: boolean;
    Pid: number;
    OOMKilled: boolean;
    ExitCode: number;
    StartedAt: string;
    FinishedAt: string;
  };
  Config: {
    Hostname: string;
    Env: string[] | null;
    WorkingDir: string;
    Labels: Record<string, string>;
    StopSignal?: string;
  };
  HostConfig: HostConfig;
  Mounts: { Type: string; Name?: string; Source: string; Destination: string }[];
  NetworkSettings: {
    Ports: Record<string, { HostIp: string; HostPort: string }[] | null> | null;
    Networks: Record<string, { IPAddress: string; Gateway: string }> | null;
  };
  /** Files that the daemon keeps for the container, on its machine. */
  LogPath?: string;
  HostsPath?: string;
  HostnamePath?: string;
  ResolvConfPath?: string;
  /** Only if it was asked for: the bytes that it has written to its own layer. */
  SizeRw?: number;
}

export interface ContainerProcesses {
  Titles: string[];
  Processes: string[][];
}

export interface ContainerStats {
  read?: string;
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; stats?: { inactive_file?: number; total_inactive_file?: number } };
}

/** What is at a path in a container: a header of the archive API. */
export interface PathStat {
  name: string;
  size: number;
  mode: number;
  mtime: string;
  linkTarget: string;
}

export interface InspectedExecution {
  Running: boolean;
  ExitCode: number | null;
  Pid: number;
}

export interface InspectedImage {
  Config: { Env?: string[] | null };
}

export interface Network {
  Name: string;
  Labels?: Record<string, string> | null;
  Options?: Record<string, string> | null;
  IPAM?: { Config?: { Subnet?: string; Gateway?: string }[] | null };
}

export interface DaemonVersion {
  Components?: { Name: string }[];
}

/** The daemon's info. */
export interface DaemonInfo {
  NCPU?: number;
  MemTotal?: number;
  KernelVersion?: string;
  Driver?: string;
  DriverStatus?: [string, string][] | null;
  Runtimes?: Record<string, unknown>;
  SecurityOptions?: string[] | null;
  DockerRootDir?: string;
  DiscoveredDevices?: { ID?: string }[] | null;
  SystemTime?: string;
}

export interface DaemonEvent {
  Action?: string;
  Type?: string;
  time?: number;
  Actor?: { ID?: string; Attributes?: Record<string, string> };
}
