import type { ApiClient, RawJson } from '../api-client.ts';
import type { Output } from '../output.ts';
import type { OutputStream } from '../cli-context.ts';
import { deployImage } from './deploy-image.ts';
import type { EndpointView } from './endpoint-client.ts';
import { folderName } from './source-folder.ts';
import { runJobToEnd } from './job-client.ts';
import type { JobView } from './job-client.ts';
import { followWorkerLogs } from './follow-worker-logs.ts';
import { formatLogLine } from './log-client.ts';
import type { DeploySettings } from './deploy-options.ts';
import { snapshotFolder, uploadFolder } from './image-upload.ts';
import { LOG_TAIL } from '../../domain/limits.ts';

export interface DevSessionOptions {
  client: ApiClient;
  folder: string;
  settings: DeploySettings;
  /** Run after every change. */
  job: RawJson | undefined;
  output: Output;
  stderr: OutputStream;
}

/** Deploys the folder after each change. A mistake in it is reported, and the next change is tried again. */
export class DevSession {
  readonly #options: DevSessionOptions;
  #digest = '';
  #trying = false;
  #ended = false;
  endpoint: EndpointView | undefined;

  constructor(options: DevSessionOptions) {
    this.#options = options;
  }

  async deploy(): Promise<void> {
    const { client, folder, settings, job, stderr } = this.#options;
    try {
      const snapshot = await snapshotFolder(folder, stderr);
      if (snapshot.digest === this.#digest) return;
      const name = folderName(folder);
      const { image } = await uploadFolder(client, name, snapshot, () => undefined);
      const { endpoint, created } = await deployImage(client, name, image, settings, () => undefined);
      this.#digest = snapshot.digest;
      this.endpoint = endpoint;
      this.#report(
        { event: 'deployed', image, ...(created && { id: endpoint.id, requestUrls: endpoint.requestUrls }) },
        created
          ? `${folder} runs at ${endpoint.requestUrls['base'] ?? endpoint.requestUrls['run']}`
          : `changed: ${image} runs from now on`,
      );
      if (job !== undefined && endpoint.type === 'QUEUE') this.#try(endpoint, job);
    } catch (error) {
      if (this.endpoint === undefined) throw error;
      this.#failed(error);
    }
  }

  /** Shows the logs of its workers. */
  async follow(signal: AbortSignal): Promise<void> {
    const { client, output } = this.#options;
    signal.addEventListener('abort', () => (this.#ended = true), { once: true });
    if (this.endpoint === undefined) return;
    await followWorkerLogs(
      client,
      this.endpoint,
      LOG_TAIL.maximum,
      (line, worker) =>
        output.printText(
          output.isText ? formatLogLine(line) : `${JSON.stringify({ event: 'log', worker, ...line })}\n`,
        ),
      signal,
    );
  }

  /** Not awaited: if the handler cannot start, a later change fixes it and then runs the waiting job. */
  #try(endpoint: EndpointView, job: RawJson): void {
    if (this.#trying) return;
    this.#trying = true;
    const report = (result: JobView): void =>
      this.#report(
        { event: 'result', job: result },
        `${result.status} ${JSON.stringify(result.output ?? result.error ?? null)}`,
      );
    void runJobToEnd(this.#options.client, endpoint, job)
      .then(report, (error: unknown) => this.#failed(error))
      .finally(() => (this.#trying = false));
  }

  #failed(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (!this.#ended) this.#report({ event: 'failed', message }, message);
  }

  #report(event: Record<string, unknown>, line: string): void {
    const { output } = this.#options;
    output.printText(output.isText ? `> ${line}\n` : `${JSON.stringify(event)}\n`);
  }
}
