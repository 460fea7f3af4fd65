import type { InstanceEngine } from '../../engines/engine.ts';
import type { Execution, TerminalSize } from '../../engines/instance.ts';
import type { PodStore } from '../../store/pod-store.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { Endpoints } from '../endpoints/endpoints.ts';
import { openShell } from './open-shell.ts';

/** What somebody wants to run beside a pod or a worker. */
export interface TerminalRequest {
  /** Without one, the shell that is there. */
  argv?: readonly string[];
  /** In a terminal of this size; without one, through pipes. */
  tty?: TerminalSize;
  /** Which terminal the other side is, as in TERM. */
  term?: string;
}

export interface OpenTerminal {
  execution: Execution;
  argv: readonly string[];
  /** It really has a terminal. */
  tty: boolean;
  /** What whoever asked for it should know. */
  note: string | null;
}

export interface TerminalsDeps {
  endpoints: Pick<Endpoints, 'get'>;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
}

const NO_TERMINAL_NOTE =
  'This machine has no program that makes terminals (script of util-linux, or python3): the command is reached through pipes.';

/** Commands beside pods and workers. */
export class Terminals {
  readonly #context: ResourceContext;
  readonly #deps: TerminalsDeps;

  constructor(context: ResourceContext, deps: TerminalsDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  async openInPod(caller: Caller, id: string, wish: TerminalRequest): Promise<OpenTerminal> {
    const { pods } = this.#context.store;
    const pod = await pods.find(caller.accountId, id);
    if (pod === undefined) throw notFound('pod', id);
    if (pod.status !== 'RUNNING')
      throw new BerthError(
        'state',
        `pod ${id} is ${pod.status}, so nothing can be run in it; start it first`,
      );
    const opened = await this.#open(pod.dataCenterId, id, wish);
    await this.#note(pods, caller, id);
    return opened;
  }

  async openInWorker(
    caller: Caller,
    endpointId: string,
    workerId: string,
    wish: TerminalRequest,
  ): Promise<OpenTerminal> {
    await this.#deps.endpoints.get(caller, endpointId);
    const worker = await this.#context.store.workers.findWorker(endpointId, workerId);
    if (worker === undefined) throw notFound('worker', workerId);
    if (worker.endedAt !== null)
      throw new BerthError('state', `worker ${workerId} has ended, so nothing can be run in it`);
    return this.#open(worker.dataCenterId, workerId, wish);
  }

  async #open(
    dataCenterId: string,
    instanceId: string,
    { argv, tty: wished, term }: TerminalRequest,
  ): Promise<OpenTerminal> {
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine === undefined)
      throw new BerthError('unavailable', `the data center ${dataCenterId} is not connected now`);
    const tty = engine.capabilities.terminal ? wished : undefined;
    const options = {
      ...(tty !== undefined && { tty }),
      ...(tty !== undefined && term !== undefined && { env: { TERM: term } }),
    };
    const opened =
      argv === undefined || argv.length === 0
        ? await openShell(engine, instanceId, options)
        : { execution: await engine.exec(instanceId, argv, options), argv };
    return {
      ...opened,
      tty: tty !== undefined,
      note: wished !== undefined && tty === undefined ? NO_TERMINAL_NOTE : null,
    };
  }

  /** Who was let in is part of the pod's history, what was typed is not. */
  async #note(pods: PodStore, caller: Caller, id: string): Promise<void> {
    await pods.change(caller.accountId, id, {}, (current) => ({
      record: current,
      audit: auditEntry(this.#context, caller, 'terminal', 'pod', id),
    }));
  }
}
