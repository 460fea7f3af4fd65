/** What people own besides endpoints, as REST v2 shows it. */
export type PodAction = 'start' | 'stop' | 'restart' | 'terminate';

export interface Mounts {
  persistent?: { size: number; path: string };
  network?: { volumeId: string; path: string }[];
}

export interface ContainerSettings {
  image: string;
  args: string;
  disk: number;
  env: Record<string, string>;
  ports: string[];
  registry: string | null;
}

export interface Pod extends ContainerSettings {
  id: string;
  name: string;
  status: string;
  statusDetail: string | null;
  actions: PodAction[];
  mounts: Mounts;
  gpu?: { id: string; count: number; vcpuCount: number; memory: number; virtual?: true };
  cpu?: { id: string; vcpuCount: number; memory: number };
  cluster?: { id: string; rank: number | null; ip?: string; role?: string };
  dataCenterId: string | null;
  ssh: { direct: { command: string } | null };
  template: string | null;
  cost: number;
  locked: boolean;
  runtime: {
    uptime: number;
    gpus: { util: number; memoryUtil: number }[];
    cpu: { util: number };
    memory: { util: number };
    ports: { private: number; public: number | null; type: string; ip: string | null }[];
  } | null;
  diskLimits: { container: boolean; volume: boolean };
  createdAt: string;
  startedAt: string | null;
  stopAfter: string | null;
  terminateAfter: string | null;
}

export interface Template extends ContainerSettings {
  id: string;
  name: string;
  mounts: Pick<Mounts, 'persistent'>;
  serverless: boolean;
  public: boolean;
}

export interface Cluster {
  id: string;
  name: string;
  type: string;
  compute: { gpuTypeId: string; gpuCountPerPod: number; podCount: number };
  pods: { total: number; byStatus: Record<string, number> };
  dataCenterId?: string;
  network?: { cidr: string };
  primary?: { podId: string; status: string; sshEndpoint?: string };
  createdAt: string;
}

export interface NetworkVolume {
  id: string;
  name: string;
  size: number;
  dataCenter: string;
  type: string;
  used: number | null;
}

export type Availability = 'NONE' | 'LOW' | 'MEDIUM' | 'HIGH';

export interface GpuType {
  id: string;
  name: string;
  memory: number;
  pool: string | null;
  price: { secure: number; serverless: number };
  maxCount: { secure: number };
  virtual: boolean;
  availability?: Availability;
}

export interface CpuType {
  id: string;
  name: string;
  vcpu: { min: number; max: number };
  ramGbPerVcpu: number;
  price: { securePerVcpu: number; serverlessPerVcpu: number };
  availability?: Availability;
}

export interface DataCenter {
  id: string;
  name: string;
  networkVolumeTypes: string[];
}

export interface AccountLimits {
  accountId: string;
  limits: {
    name: string;
    used: number;
    limit: number | null;
    warning: boolean;
    /** Where `used` was not counted in full. */
    estimated?: boolean;
  }[];
}

export interface Account {
  id: string;
  name: string;
  status: string;
  createdAt: string;
}
