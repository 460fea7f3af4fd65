import type { OutputQuery, OutputSource } from '../logs/output-log.ts';
import { type SourceLine, withoutReturn } from '../logs/source-line.ts';
import { unpooledCopy } from '../../support/unpooled-copy.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { apiStatus, KubernetesApiError } from './client/kubernetes.errors.ts';

/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
const SPACE = 0x20;
const NEWLINE = 0x0a;

/** The output of a pod, as the kubelet keeps it. */
export class PodOutput implements OutputSource {
  readonly containerId: string;
  readonly lostLines =
    'Lines are missing here: the node keeps only the newest of what is written while Berth is away.';
  readonly #client: KubernetesClient;
  readonly #path: string;
  readonly #isNodeLost: () => boolean;

  /** `path` is that of the pod. */
  constructor(client: KubernetesClient, path: string, uid: string, isNodeLost: () => boolean) {
    this.#client = client;
    this.#path = path;
    this.#isNodeLost = isNodeLost;
    this.containerId = uid;
  }

  async *read({
    signal,
    since = 0,
    tail,
    follow,
    last,
  }: OutputQuery): AsyncGenerator<SourceLine[], void, undefined> {
    // The API server would wait for the kubelet for a long time.
    if (this.#isNodeLost()) throw new KubernetesApiError(404, 'NotFound', 'its node was lost');
    const stream = await this.#client.sharedStream(
      `${this.#path}/log`,
      {
        timestamps: true,
        follow: follow === true ? true : undefined,
        tailLines: tail,
        sinceTime: since > 0 ? new Date(since * 1000).toISOString().replace('.000Z', 'Z') : undefined,
      },
      signal,
    );
    const lines = new TimedLines();
    for await (const chunk of stream) {
      const complete = lines.push(chunk);
      if (complete.length > 0) yield complete;
    }
    const rest = last === true ? lines.rest() : [];
    if (rest.length > 0) yield rest;
  }

  /** A pod whose container never started has no log, and the API server says that it is a bad request. */
  isGone(error: unknown): boolean {
    const status = apiStatus(error);
    return status === 404 || status === 400;
  }
}

/** Splits the kubelet's text into lines. Each begins with a timestamp and a space. */
export class TimedLines {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): SourceLine[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const lines: SourceLine[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      lines.push(...toLines(bytes.subarray(start, end)));
      start = end + 1;
    }
    // A copy: a part of the chunk, even an empty one, would keep all 64 KB that were read at once.
    this.#rest = unpooledCopy(bytes.subarray(start));
    return lines;
  }

  /** The unfinished line, when the stream has ended. */
  rest(): SourceLine[] {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest.length === 0 ? [] : toLines(rest);
  }
}

function toLines(bytes: Buffer): SourceLine[] {
  const space = bytes.indexOf(SPACE);
  const stamp = bytes.toString('latin1', 0, space === -1 ? bytes.length : space);
  const ts = Date.parse(stamp);
  // Such as the kubelet's own message about a log that it cannot read.
  if (Number.isNaN(ts)) return [];
  const text = withoutReturn(space === -1 ? Buffer.alloc(0) : bytes.subarray(space + 1));
  const lines: SourceLine[] = [];
  for (let at = 0; at === 0 || at < text.length; at += MAX_LINE_BYTES)
    lines.push({ stamp: padded(stamp), ts, line: text.subarray(at, at + MAX_LINE_BYTES) });
  return lines;
}

/** Stamps are compared as text, and the kubelet leaves out zeros at the end. */
function padded(stamp: string): string {
  const [, seconds = stamp, fraction = '', zone = ''] =
    /^([^.Z+]+)(?:\.(\d+))?(Z|[+-].*)?$/.exec(stamp) ?? [];
  return `${seconds}.${fraction.padEnd(9, '0')}${zone}`;
}
