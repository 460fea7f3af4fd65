import type { AcmeStore } from './acme-store.ts';
import type { BackupStore } from './backup-store.ts';
import type { ClockStore } from './clock-store.ts';
import type { ClusterStore } from './cluster-store.ts';
import type { FlashStore } from './flash-store.ts';
import type { WorkerStore } from './worker-store.ts';
import type { JobStore } from './job-store.ts';
import type { HistoryStore } from './history-store.ts';
import type { OverviewStore } from './overview-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { LeaderElection } from './leader-election.ts';
import type { LoginRequestStore } from './login-request-store.ts';
import type { ImageArchiveStore } from './image-archive-store.ts';
import type { SharedFileStore } from './shared-file-store.ts';
import type { SessionStore } from './session-store.ts';
import type { RepoModel } from '../domain/repo-model.ts';
import type { PodStore } from './pod-store.ts';
import type {
  Account,
  ApiKey,
  AuditEntry,
  Endpoint,
  NetworkVolume,
  Registry,
  RegistryDelegation,
  S3Key,
  Secret,
  Template,
} from '../domain/records.ts';
import type { ServerStore } from './server-store.ts';
import type { ShardElection } from './shard-election.ts';
import type { WakeupBus } from './wakeup-bus.ts';
import type { Collection, AuditedChange } from './collection.ts';

/**
 * What the rules ask of a store. Operations are named for their meaning; each is one
 * transaction, writes its audit entry with the change, and is on disk when it resolves.
 * A unique name that is already taken rejects with UniqueViolation.
 */
export interface Store {
  readonly accounts: AccountStore;
  readonly keys: ApiKeyStore;
  readonly s3Keys: S3KeyStore;
  readonly sessions: SessionStore;
  readonly imageArchives: ImageArchiveStore;
  readonly sharedFiles: SharedFileStore;
  readonly templates: TemplateStore;
  readonly endpoints: EndpointStore;
  readonly pods: PodStore;
  readonly clusters: ClusterStore;
  readonly volumes: Collection<NetworkVolume>;
  readonly registries: Collection<Registry>;
  readonly delegations: Collection<RegistryDelegation>;
  readonly secrets: SecretStore;
  readonly flash: FlashStore;
  readonly models: Collection<RepoModel>;
  readonly loginRequests: LoginRequestStore;
  readonly audit: AuditStore;
  readonly jobs: JobStore;
  readonly workers: WorkerStore;
  readonly ledger: LedgerStore;
  readonly history: HistoryStore;
  readonly overview: OverviewStore;
  readonly clock: ClockStore;
  readonly wakeups: WakeupBus;
  readonly leaderElection: LeaderElection;
  readonly servers: ServerStore;
  /**
   * Runs work under a lock that no other server holds at the same time. Within this server, the caller has to
   * prevent overlap.
   */
  exclusively<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Identifies this process among the servers. */
  readonly server: string;
  /** What the leading server alone writes to. Elsewhere, and in a server that led before, writes reject. */
  readonly leading: {
    readonly workers: WorkerStore;
    readonly pods: PodStore;
    readonly clock: ClockStore;
  };
  /** Where the workers of endpoints are divided among the servers; else the leading one manages all. */
  readonly workerShards?: WorkerShardStores;
  readonly backup: BackupStore;
  readonly acme: AcmeStore;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The shards of workers, each with its own lease. */
export interface WorkerShardStores {
  readonly election: ShardElection;
  /** How many each server holds. */
  countByServer(): Promise<ReadonlyMap<string, number>>;
  /** By shard: what its holder alone writes to. */
  readonly leading: readonly {
    readonly workers: WorkerStore;
    readonly servers: Pick<ServerStore, 'saveHosts' | 'saveReports'>;
  }[];
}

export interface AccountStore {
  insert(account: Account, firstKey: ApiKey, audit: AuditEntry): Promise<void>;
  find(id: string): Promise<Account | undefined>;
  list(): Promise<Account[]>;
  /** Reads the account, asks `next` what it becomes, and writes that. Undefined where there is none. */
  change(id: string, next: (current: Account) => AuditedChange<Account>): Promise<Account | undefined>;
  /**
   * Deletes the account with what is left of it: keys, templates, registries, secrets and the like. False,
   * and nothing is deleted, as long as it has an endpoint or a pod that is not gone.
   */
  remove(id: string): Promise<boolean>;
}

export interface ApiKeyStore extends Collection<ApiKey> {
  findByHash(hash: string): Promise<ApiKey | undefined>;
  /** Whoever owns it. */
  findInAnyAccount(id: string): Promise<ApiKey | undefined>;
  findRoot(): Promise<ApiKey | undefined>;
  saveLastUsed(lastUsed: ReadonlyMap<string, number>): Promise<void>;
}

export interface S3KeyStore {
  insert(key: S3Key, secret: string, audit: AuditEntry): Promise<void>;
  /** Newest first. */
  list(accountId: string): Promise<S3Key[]>;
  /** A key of any account with its secret, to check a signature. */
  findWithSecret(id: string): Promise<{ key: S3Key; secret: string } | undefined>;
  /** True where there was one. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  saveLastUsed(lastUsed: ReadonlyMap<string, number>): Promise<void>;
}

export interface TemplateStore extends Omit<Collection<Template>, 'insert' | 'change'> {
  /** Holds what the template stands on, asks `make` for it, and writes it. */
  insert(
    accountId: string,
    ids: TemplateReferenceIds,
    make: (references: TemplateReferences) => AuditedChange<Template>,
  ): Promise<Template>;
  change(
    accountId: string,
    id: string,
    ids: TemplateReferenceIds,
    next: (current: Template, references: TemplateReferences) => AuditedTemplateChange,
  ): Promise<Template | undefined>;
  findByName(accountId: string, name: string): Promise<Template | undefined>;
  /** A public template of any account. */
  findPublic(id: string): Promise<Template | undefined>;
  listPublic(limit: number): Promise<Template[]>;
}

/** What a template is about to refer to. */
export interface TemplateReferenceIds {
  registryIds?: readonly string[];
}

/** The same, as far as the account has it. None of it can go before the template is written. */
export interface TemplateReferences {
  registryIds: string[];
}

export interface AuditedTemplateChange extends AuditedChange<Template> {
  /**
   * What becomes of each endpoint that is linked to the template, in the same transaction; undefined leaves
   * it as it is.
   */
  updateLinked?: (linked: Endpoint) => AuditedChange<Endpoint> | undefined;
}

export interface EndpointStore extends Omit<Collection<Endpoint>, 'insert' | 'change'> {
  /** Holds what the endpoint stands on, asks `make` for it, and writes it. */
  insert(
    accountId: string,
    ids: EndpointReferenceIds,
    make: (references: EndpointReferences) => AuditedEndpointChange,
  ): Promise<Endpoint>;
  change(
    accountId: string,
    id: string,
    ids: EndpointReferenceIds,
    next: (current: Endpoint, references: EndpointReferences) => AuditedEndpointChange,
  ): Promise<Endpoint | undefined>;
  /** Whoever owns it. */
  findInAnyAccount(id: string): Promise<Endpoint | undefined>;
  /** The images of all endpoints that are folders on this server, and whose they are. */
  listLocalImages(): Promise<{ image: string; accountId: string }[]>;
}

/** What an endpoint is about to refer to. */
export interface EndpointReferenceIds extends TemplateReferenceIds {
  templateId?: string;
  /** The template changes together with the endpoint, so it is locked for update. */
  changesTemplate?: true;
  volumeIds?: readonly string[];
}

/** The same, as far as the account has it. None of it can change or go before the endpoint is written. */
export interface EndpointReferences extends TemplateReferences {
  template: Template | undefined;
  volumes: NetworkVolume[];
}

export interface AuditedEndpointChange extends AuditedChange<Endpoint> {
  /** A template that is made together with the endpoint. */
  template?: Template;
  /** The template of the references, as it becomes together with the endpoint. */
  changedTemplate?: AuditedTemplateChange;
}

export interface SecretStore {
  insert(secret: Secret, value: string, audit: AuditEntry): Promise<void>;
  find(accountId: string, id: string): Promise<Secret | undefined>;
  list(accountId: string): Promise<Secret[]>;
  /** Without a value the old one stays. */
  change(
    accountId: string,
    id: string,
    next: (current: Secret) => AuditedChange<Secret> & { value?: string },
  ): Promise<Secret | undefined>;
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  /** The values of these names, for a container that starts. */
  findValues(accountId: string, names: string[]): Promise<Map<string, string>>;
}

export interface AuditStore {
  /** For a change that no table holds; every other one writes its entry in its own transaction. */
  record(entry: AuditEntry): Promise<void>;
  /** Newest first. */
  list(accountId: string, page: { limit: number; before?: number }): Promise<(AuditEntry & { id: number })[]>;
  /**
   * Newest first, one page of what matches. `before` is where the next page begins; undefined where nothing
   * older is left. A page may be short or empty and still have a next one: each reads so many rows at most.
   */
  search(
    filter: AuditFilter,
    page: { limit: number; before?: number },
    maxScanned?: number,
  ): Promise<{ entries: FoundAuditEntry[]; before: number | undefined }>;
}

/** What is left out matches everything. */
export interface AuditFilter {
  accountId?: string;
  /** Null is Berth itself. */
  keyId?: string | null;
  action?: string;
  resource?: string;
  resourceId?: string;
  /** Inclusive. */
  from?: number;
  /** Exclusive. */
  to?: number;
}

export interface FoundAuditEntry extends AuditEntry {
  id: number;
  /** Null where the key is deleted, or Berth itself acted. */
  keyName: string | null;
}
