import type { Duplex } from 'node:stream';
import type { FakeJob, FakeJobResult, ReceivedMessage } from './fake-job.ts';

/** What a channel asks of the platform that it belongs to. */
export interface ChannelPlatform {
  readonly jobs: ReadonlyMap<string, FakeJob>;
  readonly answersHeartbeats: boolean | undefined;
  readonly acknowledgesResults: boolean;
  readonly acknowledgesReturns: boolean;
  readonly acknowledgesChunk: (job: FakeJob, number: number) => boolean;
  /** A longer line breaks its channel. */
  readonly maxLineLength: number;
  readonly channels: Set<FakePlatformChannel>;
  readonly onWorkerEnd: (channel: FakePlatformChannel) => void;
  receive(message: ReceivedMessage): void;
  dispatch(): void;
  notifyWatchers(): void;
  addChunk(job: FakeJob, output: unknown, number: number | undefined): void;
  finish(job: FakeJob, result: FakeJobResult): void;
}

/** The platform's end of one channel. */
export class FakePlatformChannel {
  readonly #server: ChannelPlatform;
  readonly #socket: Duplex;
  readonly workerId: string;
  credits = 0;
  /** In how many pieces everything came. */
  packets = 0;
  /** The worker announced that it disconnects. */
  receivedQuit = false;

  constructor(server: ChannelPlatform, workerId: string, socket: Duplex, head: Buffer) {
    this.#server = server;
    this.#socket = socket;
    this.workerId = workerId;
    let rest: Buffer = head;
    socket.on('data', (piece: Buffer) => {
      this.packets += 1;
      rest = Buffer.concat([rest, piece]);
      for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
        if (end > server.maxLineLength) return void socket.destroy();
        const line = rest.toString('utf8', 0, end);
        rest = rest.subarray(end + 1);
        this.#read(line);
      }
    });
    socket.on('end', () => {
      server.onWorkerEnd(this);
      socket.end();
    });
    socket.on('close', () => {
      server.channels.delete(this);
      server.notifyWatchers();
    });
  }

  send(line: string): void {
    this.#socket.write(`${line}\n`);
  }

  /** Raw bytes, cut wherever a test wants. */
  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  sendJob(jobId: string, job: unknown): void {
    this.credits -= 1;
    this.send(`J ${this.#server.jobs.get(jobId)?.lease ?? ''} ${JSON.stringify(job)}`);
  }

  /** Reads no more, so that what the worker sends piles up. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(line: string): void {
    const what = line.charAt(0);
    this.#server.receive({
      operation: what,
      receivedAt: Date.now(),
      query: new URLSearchParams(),
      headers: {},
      text: line.slice(2),
    });
    if (what === 'T') {
      this.credits += Number.parseInt(line.slice(2), 10);
      this.#server.dispatch();
    } else if (what === 'L') {
      if (this.#server.answersHeartbeats === true) this.send('H');
    } else if (what === 'N') {
      this.credits = 0;
    } else if (what === 'Q') {
      this.receivedQuit = true;
      this.credits = 0;
    } else if (what === 'B') {
      const [id = '', lease = ''] = line.slice(2).split(' ');
      const job = this.#server.jobs.get(id);
      if (this.#server.acknowledgesReturns) this.send(`A ${id} ${lease}`);
      if (job?.lease === lease && job.state === 'given') job.state = 'waiting';
      this.#server.dispatch();
      this.#server.notifyWatchers();
    } else if ('DPS'.includes(what)) this.#readAbout(what, line);
  }

  #readAbout(what: string, line: string): void {
    const idEnd = line.indexOf(' ', 2);
    const leaseEnd = line.indexOf(' ', idEnd + 1);
    const [lease, number] = line.slice(idEnd + 1, leaseEnd).split('~');
    const job = this.#server.jobs.get(line.slice(2, idEnd));
    const value: unknown = JSON.parse(line.slice(leaseEnd + 1));
    if (what === 'D' && this.#server.acknowledgesResults) this.send(`A ${line.slice(2, idEnd)} ${lease}`);
    if (job === undefined || job.lease !== lease) return;
    this.#accept(what, job, value, number === undefined ? undefined : Number(number));
    if (what === 'S' && number !== undefined && this.#server.acknowledgesChunk(job, Number(number)))
      this.send(`K ${job.id} ${lease} ${number}`);
    this.#server.notifyWatchers();
  }

  #accept(what: string, job: FakeJob, value: unknown, number: number | undefined): void {
    if (what === 'P') job.progress.push(value);
    else if (what === 'S') this.#server.addChunk(job, (value as { output: unknown }).output, number);
    else
      this.#server.finish(job, {
        body: value as Record<string, unknown>,
        transport: 'channel',
        isStream: undefined,
      });
  }
}
