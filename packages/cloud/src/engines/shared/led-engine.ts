import type { InstanceEngine } from '../engine.ts';
import type { InstanceSpec } from '../instance.ts';
import { BerthError } from '../../support/errors.ts';

/**
 * All that an engine has, with every optional part that this one has. The methods may be taken from it one by
 * one.
 */
export function delegateTo(engine: InstanceEngine): InstanceEngine {
  return {
    kind: engine.kind,
    capabilities: engine.capabilities,
    ...(engine.files !== undefined && { files: engine.files }),
    ...(engine.volumes !== undefined && { volumes: engine.volumes }),
    capacity: () => engine.capacity(),
    ...(engine.isolation && { isolation: () => engine.isolation?.() ?? Promise.resolve('none' as const) }),
    ...(engine.connection && { connection: engine.connection.bind(engine) }),
    imageProblem: (image) => engine.imageProblem(image),
    ...(engine.imageLookupProblem && {
      imageLookupProblem: async (image: string, registry: InstanceSpec['registry']) =>
        engine.imageLookupProblem?.(image, registry),
    }),
    ...(engine.pruneImages && {
      pruneImages: (unusedSince: number, inUse: ReadonlySet<string>) =>
        engine.pruneImages?.(unusedSince, inUse) ?? Promise.resolve([]),
    }),
    prepareImage: (image, accountId) => engine.prepareImage?.(image, accountId),
    accountProblem: (accountId) => engine.accountProblem?.(accountId),
    start: (spec) => engine.start(spec),
    adopt: (handle) => engine.adopt(handle),
    ...(engine.findElsewhere && {
      findElsewhere: (id: string) => engine.findElsewhere?.(id) ?? Promise.resolve(undefined),
    }),
    stop: (id, graceMs) => engine.stop(id, graceMs),
    remove: (id, graceMs) => engine.remove(id, graceMs),
    deleteLog: (id) => engine.deleteLog(id),
    list: () => engine.list(),
    ...(engine.watched && { watched: () => engine.watched?.() }),
    watch: (listener) => engine.watch(listener),
    logs: (id, query, signal) => engine.logs(id, query, signal),
    logSystemLine: (id, line) => engine.logSystemLine(id, line),
    exec: (id, argv, options) => engine.exec(id, argv, options),
    address: (id, port) => engine.address(id, port),
    usage: (id) => engine.usage(id),
    ...(engine.limitsContainerDisk && {
      limitsContainerDisk: () => engine.limitsContainerDisk?.() ?? Promise.resolve(false),
    }),
    ...(engine.subnetsInUse && { subnetsInUse: () => engine.subnetsInUse?.() ?? Promise.resolve([]) }),
    close: () => engine.close(),
  };
}

/**
 * An engine in the hands of the leading server. A server that leads no longer, and does not know it yet,
 * changes nothing.
 */
export function ledEngine(engine: InstanceEngine, isLeading: () => boolean): InstanceEngine {
  const check = (): void => {
    if (!isLeading())
      throw new BerthError(
        'unavailable',
        'this server is not the leader; nothing was started or stopped, try again',
      );
  };
  return {
    ...delegateTo(engine),
    start: async (spec) => {
      check();
      return engine.start(spec);
    },
    stop: async (id, graceMs) => {
      check();
      await engine.stop(id, graceMs);
    },
    remove: async (id, graceMs) => {
      check();
      await engine.remove(id, graceMs);
    },
  };
}
