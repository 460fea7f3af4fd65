/**
 * The limits that more than one interface checks: REST v1 and v2, GraphQL, the services, the OpenAPI
 * documents and the CLI read them here. Where interfaces accept different values, each has its own
 * constant, side by side. What belongs to one file alone stays in that file.
 */

/** Both ends are allowed. */
export interface Bounds {
  minimum: number;
  maximum: number;
}

const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

// Names and texts

/** Names of templates, pods, endpoints, clusters, volumes, registries, secrets, keys and accounts. */
export const MAX_NAME_LENGTH = 191;
/** A reference such as `registry.example/team/image:tag`. */
export const MAX_IMAGE_REFERENCE_LENGTH = 500;
/** REST v2 only; GraphQL takes a description of any length. */
export const MAX_SECRET_DESCRIPTION_LENGTH = 4096;
export const MAX_SECRET_VALUE_BYTES = 16 * 1024 * 1024;
export const SECRET_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_./-]*$';
export const CUDA_VERSION_PATTERN = '^\\d+\\.\\d+$';
/** An error lists at most this many findings: a long list may hold a mistake in each of its entries. */
export const MAX_FINDINGS = 20;

// Disks and volumes, in GB

/** Far beyond any disk, and within what both databases count with. */
export const MAX_DISK_GB = 1_000_000;
/** What REST v1 and GraphQL accept for every disk. */
export const DISK_GB: Bounds = { minimum: 0, maximum: MAX_DISK_GB };
/** REST v2: an empty container disk is of no use. */
export const V2_CONTAINER_DISK_GB: Bounds = { minimum: 1, maximum: MAX_DISK_GB };
/** REST v2: the disk of a pod or template that outlives restarts. */
export const V2_PERSISTENT_DISK_GB: Bounds = { minimum: 10, maximum: MAX_DISK_GB };
/** REST v1 and GraphQL. */
export const V1_VOLUME_SIZE_GB: Bounds = { minimum: 0, maximum: 4000 };
export const V2_VOLUME_SIZE_GB: Bounds = { minimum: 10, maximum: 4096 };

// Hardware

/** GPUs of one pod or worker. */
export const GPU_COUNT: Bounds = { minimum: 1, maximum: 1024 };
/** GPUs of each pod or worker in a question to the catalog (REST v2). */
export const CATALOG_GPU_COUNT: Bounds = { minimum: 1, maximum: 1000 };
/** REST v1 and GraphQL; existing definitions ask for a single vCPU. */
export const MIN_VCPU_COUNT = 1;
export const V2_MIN_VCPU_COUNT = 2;
/** vCPUs in a question to the catalog (REST v2). */
export const CATALOG_VCPU_COUNT: Bounds = { minimum: V2_MIN_VCPU_COUNT, maximum: 1024 };
/** Pods of one cluster. */
export const CLUSTER_POD_COUNT: Bounds = { minimum: 2, maximum: 250 };
/** Variables that one pod may be given; what Berth adds to its environment does not count. */
export const MAX_POD_ENV_VARIABLES = 50;

// Endpoints

/** Guards against typing errors. */
export const WORKER_COUNT: Bounds = { minimum: 0, maximum: 100_000 };
/** Seconds until a worker without work stops. */
export const IDLE_TIMEOUT: Bounds = { minimum: 1, maximum: 3600 };
/** Seconds of waiting that an endpoint can scale by. */
export const QUEUE_DELAY: Bounds = { minimum: 0.5, maximum: 1_000_000 };
/** Requests per worker that an endpoint can scale by. */
export const REQUEST_COUNT: Bounds = { minimum: 1, maximum: 1_000_000 };
export const RETRY_COUNT: Bounds = { minimum: 0, maximum: 100 };
/** Entries in one list of an endpoint: GPU types, data centers, volumes and so on. */
export const MAX_ENDPOINT_LIST_LENGTH = 100;
/** Characters of an endpoint's texts that have no other limit. */
export const MAX_ENDPOINT_TEXT_LENGTH = 1000;

// Jobs, in milliseconds

/** Of a request to `run`, and to `runsync`. */
export const MAX_RUN_BODY_BYTES = 10 * 1024 * 1024;
export const MAX_RUNSYNC_BODY_BYTES = 20 * 1024 * 1024;
/** The log of webhooks shows a thousand at a time, each with its address. */
export const MAX_WEBHOOK_LENGTH = 8192;
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255;
/** How long one attempt may run; of an endpoint, 0 is no limit. */
export const EXECUTION_TIMEOUT_MS: Bounds = { minimum: 5000, maximum: 7 * DAY_MS };
/** From submission until a job is dropped, whatever its state. */
export const JOB_TTL_MS: Bounds = { minimum: 10_000, maximum: 7 * DAY_MS };
/** How long an endpoint may keep results. */
export const RETENTION_MS: Bounds = { minimum: 1000, maximum: 7 * DAY_MS };
/** How long results are kept where neither the endpoint nor the request says. */
export const JOB_RETENTION_MS = {
  run: 30 * MINUTE_MS,
  runsync: MINUTE_MS,
  longestRunsync: 5 * MINUTE_MS,
  longest: 7 * DAY_MS,
};
/** How long `runsync` waits for the result. */
export const SYNC_WAIT_MS = { minimum: 1000, maximum: 300_000, default: 90_000 };
/** How long `stream` waits for a first chunk. */
export const STREAM_WAIT_MS: Bounds = { minimum: 0, maximum: 90_000 };
/** What is kept of the output of one instance. */
export interface LogLimits {
  /** The oldest lines are dropped beyond this. */
  bytes: number;
  bytesPerSecond: number;
}
/**
 * As in the settings: enough for the longest tail that can be requested, small enough for a thousand workers.
 */
export const DEFAULT_LOG_LIMITS: LogLimits = { bytes: 16_000_000, bytesPerSecond: 4_000_000 };
/** As in the settings: instances leave so much of the disk free. */
export const DEFAULT_DISK_RESERVE_BYTES = 64_000_000;
/** As in the settings: for so many days at most something unused is kept. */
export const MAX_KEEP_DAYS = 3650;
/** How long the log of an instance that was removed can be read. */
export const LOG_RETENTION_MS = 7 * DAY_MS;

// Images that were uploaded as a folder

/** A folder travels in one request; what does not fit belongs into a container image or a network volume. */
export const MAX_IMAGE_UPLOAD_BYTES = 256 * 1024 * 1024;
export const MAX_IMAGE_FILES = 50_000;
export const MAX_IMAGE_PATH_LENGTH = 1024;
export const MAX_LOCAL_IMAGE_NAME_LENGTH = 63;
/** `local/<name>`: lower-case letters and digits, with single dashes or underscores between them. */
export const LOCAL_IMAGE_NAME_PATTERN = '^[a-z0-9]+(?:[_-][a-z0-9]+)*$';

// Uploads

/** Parts of one multipart upload, as in S3. */
export const MAX_UPLOAD_PARTS = 10_000;
/** This much of an unwanted request body is read and discarded, so that the client gets the response. */
export const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

// Answers

/** Entries of one page (REST v2, and the job list). */
export const MAX_PAGE_SIZE = 1000;
/** Builds of one page (REST v2). */
export const MAX_BUILDS_PAGE_SIZE = 100;
/** Public templates of other accounts in one list (REST v1 and GraphQL). */
export const MAX_PUBLIC_TEMPLATES = 1000;
/** The same in the catalog (REST v2). */
export const MAX_CATALOG_TEMPLATES = 100;
/** Log lines to begin with. */
export const LOG_TAIL: Bounds = { minimum: 0, maximum: 5000 };
export const DEFAULT_LOG_TAIL = 100;
/** Jobs of one list in the job API. */
export const JOB_LIST_LIMIT: Bounds = { minimum: 1, maximum: 1000 };
export const DEFAULT_JOB_LIST_LIMIT = 100;
/**
 * One search through the jobs of an endpoint (REST v2) scans so many jobs, for so long, and reads so much
 * of each request for a text. It says where the next one continues.
 */
export const JOB_SEARCH = { rows: 20_000, milliseconds: 2_000, textChars: 65_536 };
/** Jobs that one call retries, cancels or sends again. */
export const MAX_BULK_JOBS = 1000;
/** A merge patch for the inputs of many jobs: each of the new jobs holds it. */
export const MAX_INPUT_PATCH_BYTES = 64 * 1024;
/** Columns and rows of a terminal. */
export const TERMINAL_SIZE: Bounds = { minimum: 1, maximum: 4096 };

/** Where the networks of accounts and of clusters get their addresses on container engines, by default. */
export const CONTAINER_NETWORK_RANGE = '10.80.0.0/12';
export const CLUSTER_NETWORK_RANGE = '10.65.0.0/16';

/** An answer up to this size is read and sent at once. */
export const SMALL_ANSWER_BYTES = 256 * 1024;
/**
 * Memory for large answers that are being sent, for one account and for all. A larger answer goes alone. What
 * is beyond waits for its turn.
 */
export const ANSWER_BYTES_IN_FLIGHT = { account: 16 * 1024 * 1024, all: 128 * 1024 * 1024 };
