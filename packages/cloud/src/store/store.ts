import type { ClusterStore } from './clusters.ts';
import type { FlashStore } from './flash.ts';
import type { FleetStore } from './fleet.ts';
import type { JobStore } from './jobs.ts';
import type { LedgerStore } from './ledger.ts';
import type { Leadership } from './leadership.ts';
import type { LoginRequestStore } from './login-requests.ts';
import type { RepoModel } from './models.ts';
import type { PodStore } from './pods.ts';
import type {
  Account,
  ApiKey,
  AuditEntry,
  Endpoint,
  NetworkVolume,
  Owned,
  Page,
  Registry,
  RegistryDelegation,
  S3Key,
  Secret,
  Template,
} from './records.ts';
import type { Wakeups } from './wakeups.ts';

/**
 * What the rules ask of a store. Operations are named for their meaning; each is one
 * transaction, writes its audit entry with the change, and is on disk when it resolves.
 * A unique name that is already taken rejects with UniqueViolation.
 */
export interface Store {
  readonly accounts: AccountStore;
  readonly keys: KeyStore;
  readonly s3Keys: S3KeyStore;
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
  readonly fleet: FleetStore;
  readonly ledger: LedgerStore;
  readonly wakeups: Wakeups;
  readonly leadership: Leadership;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Things of one kind that accounts own. Someone else's thing is simply not there. */
export interface Collection<T extends Owned> {
  insert(record: T, audit: AuditEntry): Promise<void>;
  find(accountId: string, id: string): Promise<T | undefined>;
  /** Newest first; all of them without a page. */
  list(accountId: string, page?: Page): Promise<T[]>;
  /**
   * Reads the record, asks `next` what it becomes, and writes that: no other change comes between.
   * `next` may throw to refuse. Undefined where there is no such record.
   */
  change(accountId: string, id: string, next: (current: T) => Changed<T>): Promise<T | undefined>;
  /** True where there was one. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
}

export interface Changed<T> {
  record: T;
  audit: AuditEntry;
}

export interface AccountStore {
  insert(account: Account, firstKey: ApiKey, audit: AuditEntry): Promise<void>;
  find(id: string): Promise<Account | undefined>;
  list(): Promise<Account[]>;
  changeSshKeys(
    id: string,
    next: (current: string[]) => { keys: string[]; audit: AuditEntry },
  ): Promise<Account | undefined>;
}

export interface KeyStore extends Collection<ApiKey> {
  findByHash(hash: string): Promise<ApiKey | undefined>;
  /** Whoever owns it. */
  findAnywhere(id: string): Promise<ApiKey | undefined>;
  root(): Promise<ApiKey | undefined>;
  noteUse(lastUsed: ReadonlyMap<string, number>): Promise<void>;
}

export interface S3KeyStore {
  insert(key: S3Key, secret: string, audit: AuditEntry): Promise<void>;
  /** Newest first. */
  list(accountId: string): Promise<S3Key[]>;
  /** With its secret, whoever owns it: to check a signature. */
  open(id: string): Promise<{ key: S3Key; secret: string } | undefined>;
  /** True where there was one. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  noteUse(lastUsed: ReadonlyMap<string, number>): Promise<void>;
}

export interface TemplateStore extends Omit<Collection<Template>, 'insert' | 'change'> {
  /** Holds what the template stands on, asks `make` for it, and writes it. */
  insert(
    accountId: string,
    ids: TemplateFootingIds,
    make: (footing: TemplateFooting) => Changed<Template>,
  ): Promise<Template>;
  change(
    accountId: string,
    id: string,
    ids: TemplateFootingIds,
    next: (current: Template, footing: TemplateFooting) => ChangedTemplate,
  ): Promise<Template | undefined>;
  findByName(accountId: string, name: string): Promise<Template | undefined>;
  /** A public template of any account. */
  findPublic(id: string): Promise<Template | undefined>;
  listPublic(limit: number): Promise<Template[]>;
}

/** What a template is about to refer to. */
export interface TemplateFootingIds {
  registryIds?: readonly string[];
}

/** The same, as far as the account has it. None of it can go before the template is written. */
export interface TemplateFooting {
  registryIds: string[];
}

export interface ChangedTemplate extends Changed<Template> {
  /** What becomes of each endpoint that is linked to the template, in the same transaction; undefined leaves it as it is. */
  follow?: (linked: Endpoint) => Changed<Endpoint> | undefined;
}

export interface EndpointStore extends Omit<Collection<Endpoint>, 'insert' | 'change'> {
  /** Holds what the endpoint stands on, asks `make` for it, and writes it. */
  insert(accountId: string, ids: FootingIds, make: (footing: Footing) => ChangedEndpoint): Promise<Endpoint>;
  change(
    accountId: string,
    id: string,
    ids: FootingIds,
    next: (current: Endpoint, footing: Footing) => ChangedEndpoint,
  ): Promise<Endpoint | undefined>;
  /** Whoever owns it. */
  findAnywhere(id: string): Promise<Endpoint | undefined>;
}

/** What an endpoint is about to refer to. */
export interface FootingIds extends TemplateFootingIds {
  templateId?: string;
  /** That template changes together with the endpoint: nobody else holds it meanwhile. */
  changesTemplate?: true;
  volumeIds?: readonly string[];
}

/** The same, as far as the account has it. None of it can change or go before the endpoint is written. */
export interface Footing extends TemplateFooting {
  template: Template | undefined;
  volumes: NetworkVolume[];
}

export interface ChangedEndpoint extends Changed<Endpoint> {
  /** A template that is made together with the endpoint. */
  template?: Template;
  /** The template of the footing, as it becomes together with the endpoint. */
  changedTemplate?: ChangedTemplate;
}

export interface SecretStore {
  insert(secret: Secret, value: string, audit: AuditEntry): Promise<void>;
  find(accountId: string, id: string): Promise<Secret | undefined>;
  list(accountId: string): Promise<Secret[]>;
  /** Without a value the old one stays. */
  change(
    accountId: string,
    id: string,
    next: (current: Secret) => Changed<Secret> & { value?: string },
  ): Promise<Secret | undefined>;
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  /** The values of these names, for a container that starts. */
  values(accountId: string, names: string[]): Promise<Map<string, string>>;
}

export interface AuditStore {
  /** For a change that no table holds; every other one writes its entry in its own transaction. */
  record(entry: AuditEntry): Promise<void>;
  /** Newest first. */
  list(accountId: string, page: { limit: number; before?: number }): Promise<(AuditEntry & { id: number })[]>;
}
