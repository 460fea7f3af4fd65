import { VERSION } from '../version.ts';

export interface UrlTemplates {
  take: string;
  done: string;
  stream: string | undefined;
  ping: string | undefined;
}

/** Maximum length of the job list in a ping, so that servers accept the URL. */
const MAX_JOB_LIST_LENGTH = 65_535;

/**
 * The URLs of the public protocol. In that of job-take, `$ID` is the worker; in those of results and chunks,
 * `$RUNPOD_POD_ID` is the worker and `$ID` the job.
 */
export class WorkerUrls {
  readonly #take: string;
  readonly #done: string;
  readonly #stream: string | undefined;
  readonly #ping: string | undefined;

  constructor({ take, done, stream, ping }: UrlTemplates, workerId: string) {
    const withWorker = (template: string): string => template.replaceAll('$RUNPOD_POD_ID', () => workerId);
    this.#take = take.replaceAll('$ID', () => workerId);
    this.#done = withWorker(done);
    this.#stream = stream === undefined ? undefined : withWorker(stream);
    this.#ping = ping === undefined ? undefined : withWorker(ping);
  }

  /** One job is taken at one URL, several at another. */
  take(room: number, busy: boolean): string {
    const inProgress = `job_in_progress=${busy ? 1 : 0}`;
    if (room === 1) return withQuery(this.#take, inProgress);
    return withQuery(
      this.#take.replace('/job-take/', '/job-take-batch/'),
      `batch_size=${room}&${inProgress}`,
    );
  }

  /** Undefined where the job-take URL does not have the shape that these are derived from. */
  get cancellations(): string | undefined {
    return this.#sibling('/job-stop/');
  }

  get channel(): string | undefined {
    return this.#sibling('/job-channel/');
  }

  done(jobId: string, streamed: boolean): string {
    return withQuery(withJob(this.#done, jobId), `isStream=${streamed}`);
  }

  /** `isStream` is false here: it marks the result that ends a stream. */
  stream(jobId: string): string | undefined {
    return this.#stream === undefined ? undefined : withQuery(withJob(this.#stream, jobId), 'isStream=false');
  }

  /** A truncated list is marked as partial: otherwise the server would take the missing jobs for lost. */
  ping(jobIds: readonly string[], most = Infinity): string | undefined {
    if (this.#ping === undefined) return undefined;
    const named = idsThatFit(jobIds, most);
    const list = named.length === 0 ? '' : `job_id=${encoded(named.join(','))}&`;
    return withQuery(
      this.#ping,
      `${list}${named.length < jobIds.length ? 'job_ids=partial&' : ''}berth_version=${VERSION}`,
    );
  }

  unhealthy(check: string, reason: string): string | undefined {
    if (this.#ping === undefined) return undefined;
    return withQuery(
      this.#ping,
      `status=unhealthy&check=${encoded(check)}&reason=${encoded(reason)}&berth_version=${VERSION}`,
    );
  }

  #sibling(part: string): string | undefined {
    return this.#take.includes('/job-take/') ? this.#take.replace('/job-take/', part) : undefined;
  }
}

function withJob(template: string, jobId: string): string {
  return template.replaceAll('$ID', () => encoded(jobId));
}

/** A lone surrogate, which JSON can hold, cannot be URL-encoded and would throw. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function withQuery(address: string, query: string): string {
  return `${address}${address.includes('?') ? '&' : '?'}${query}`;
}

/** The first ids, as many as fit into the list. */
function idsThatFit(jobIds: readonly string[], most: number): readonly string[] {
  let length = -1;
  const left = jobIds.findIndex(
    (id, index) => index === most || (length += id.length + 1) > MAX_JOB_LIST_LENGTH,
  );
  return left < 0 ? jobIds : jobIds.slice(0, left);
}
