import type { Client, JsonText } from '../client.ts';
import type { Output } from '../output.ts';
import type { Writable } from '../surroundings.ts';
import { deployImage } from './deployment.ts';
import type { EndpointView } from './endpoints.ts';
import { folderName } from './folder.ts';
import { runToEnd } from './jobs.ts';
import type { JobView } from './jobs.ts';
import { followWorkers, MOST_LINES } from './log-followers.ts';
import { shownLine } from './logs.ts';
import type { Order } from './order.ts';
import { takeSnapshot, uploadFolder } from './upload.ts';

export interface DevSessionParts {
  client: Client;
  folder: string;
  order: Order;
  /** Run after every change. */
  job: JsonText | undefined;
  output: Output;
  stderr: Writable;
}

/** A folder that runs as it is now. A mistake in it is told, and the next change is another try. */
export class DevSession {
  readonly #parts: DevSessionParts;
  #digest = '';
  #trying = false;
  #ended = false;
  endpoint: EndpointView | undefined;

  constructor(parts: DevSessionParts) {
    this.#parts = parts;
  }

  async deploy(): Promise<void> {
    const { client, folder, order, job, stderr } = this.#parts;
    try {
      const snapshot = await takeSnapshot(folder, stderr);
      if (snapshot.digest === this.#digest) return;
      const name = folderName(folder);
      const { image } = await uploadFolder(client, name, snapshot, () => undefined);
      const { endpoint, created } = await deployImage(client, name, image, order, () => undefined);
      this.#digest = snapshot.digest;
      this.endpoint = endpoint;
      this.#tell(
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
    const { client, output } = this.#parts;
    signal.addEventListener('abort', () => (this.#ended = true), { once: true });
    if (this.endpoint === undefined) return;
    await followWorkers(
      client,
      this.endpoint,
      MOST_LINES,
      (line, worker) =>
        output.text(
          output.forPeople ? shownLine(line) : `${JSON.stringify({ event: 'log', worker, ...line })}\n`,
        ),
      signal,
    );
  }

  /** Nobody waits for it: a handler that cannot start is mended by the next change, and then does the job that still waits. */
  #try(endpoint: EndpointView, job: JsonText): void {
    if (this.#trying) return;
    this.#trying = true;
    const tell = (result: JobView): void =>
      this.#tell(
        { event: 'result', job: result },
        `${result.status} ${JSON.stringify(result.output ?? result.error ?? null)}`,
      );
    void runToEnd(this.#parts.client, endpoint, job)
      .then(tell, (error: unknown) => this.#failed(error))
      .finally(() => (this.#trying = false));
  }

  #failed(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (!this.#ended) this.#tell({ event: 'failed', message }, message);
  }

  #tell(event: Record<string, unknown>, line: string): void {
    const { output } = this.#parts;
    output.text(output.forPeople ? `> ${line}\n` : `${JSON.stringify(event)}\n`);
  }
}
