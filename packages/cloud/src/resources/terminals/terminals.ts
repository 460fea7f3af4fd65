import type { InstanceEngine } from '../../engines/engine.ts';
import type { Execution, TerminalSize } from '../../engines/instance.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { Endpoints } from '../endpoints/endpoints.ts';
import { openShell } from './open-shell.ts';

/** A command to run in a pod or a worker. */
export interface TerminalRequest {
  /** Default: the shell of the instance. */
  argv?: readonly string[];
  /** The size of the terminal; without it, the command uses pipes. */
  tty?: TerminalSize;
  /** The terminal type of the client, as in TERM. */
  term?: string;
}

export interface OpenTerminal {
  execution: Execution;
  argv: readonly string[];
  /** Whether the command has a terminal. */
  tty: boolean;
  /** A message for the user. */
  note: string | null;
}

export interface TerminalsDeps {
  endpoints: Pick<Endpoints, 'get'>;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
}

const NO_TERMINAL_NOTE =
  'This machine has no program that can create a terminal (script of util-linux, or python3), so the ' +
  'command uses pipes.';

/** Runs commands in pods and workers. */
export class Terminals {
  readonly #context: ResourceContext;
  readonly #deps: TerminalsDeps;

  constructor(context: ResourceContext, deps: TerminalsDeps) {
    this.#context = context;
    this.#deps = deps;
  }

  async openInPod(caller: Caller, id: string, request: TerminalRequest): Promise<OpenTerminal> {
    const { pods } = this.#context.store;
    const pod = await pods.find(caller.accountId, id);
    if (pod === undefined) throw notFound('pod', id);
    if (pod.status !== 'RUNNING')
      throw new BerthError(
        'state',
        `pod ${id} is ${pod.status}, so nothing can be run in it; start it first`,
      );
    const opened = await this.#open(pod.dataCenterId, id, request);
    await this.#audit(caller, 'pod', id);
    return opened;
  }

  async openInWorker(
    caller: Caller,
    endpointId: string,
    workerId: string,
    request: TerminalRequest,
  ): Promise<OpenTerminal> {
    await this.#deps.endpoints.get(caller, endpointId);
    const worker = await this.#context.store.workers.findWorker(endpointId, workerId);
    if (worker === undefined) throw notFound('worker', workerId);
    if (worker.endedAt !== null)
      throw new BerthError('state', `worker ${workerId} has ended, so nothing can be run in it`);
    const opened = await this.#open(worker.dataCenterId, workerId, request);
    await this.#audit(caller, 'worker', workerId);
    return opened;
  }

  async #open(
    dataCenterId: string,
    instanceId: string,
    { argv, tty: requestedTty, term }: TerminalRequest,
  ): Promise<OpenTerminal> {
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine === undefined)
      throw new BerthError('unavailable', `the data center ${dataCenterId} is not connected now`);
    const tty = engine.capabilities.terminal ? requestedTty : undefined;
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
      note: requestedTty !== undefined && tty === undefined ? NO_TERMINAL_NOTE : null,
    };
  }

  /** The audit log says who opened a terminal, not what was typed. */
  async #audit(caller: Caller, resource: 'pod' | 'worker', id: string): Promise<void> {
    await this.#context.store.audit.record(auditEntry(this.#context, caller, 'terminal', resource, id));
  }
}
