import pg from 'pg';

export interface PostgresCalls {
  /**
   * Resolves when no connection is being opened and no query is without an answer; undefined where that is
   * so.
   */
  whenIdle(): Promise<void> | undefined;
  stop(): void;
}

type Call = (this: unknown, ...args: unknown[]) => unknown;

/** Counts what waits for PostgreSQL in this process, but for one client. */
export function countPostgresCalls(except: pg.Client): PostgresCalls {
  let underWay = 0;
  let idle: PromiseWithResolvers<void> | undefined;
  const stops = [
    [pg.Client.prototype, 'query'],
    [pg.Client.prototype, 'connect'],
    [pg.Client.prototype, 'end'],
  ].map(([prototype, name]) => {
    const methods = prototype as unknown as Record<string, Call>;
    const original = methods[name as string] as Call;
    methods[name as string] = function (...args) {
      if (this === except) return original.apply(this, args);
      underWay += 1;
      let isDone = false;
      const done = (): void => {
        if (isDone) return;
        isDone = true;
        underWay -= 1;
        if (underWay > 0) return;
        idle?.resolve();
        idle = undefined;
      };
      const last = args.at(-1);
      if (typeof last === 'function') {
        args[args.length - 1] = (...answer: unknown[]) => {
          done();
          (last as (...answer: unknown[]) => void)(...answer);
        };
        return original.apply(this, args);
      }
      const answer = original.apply(this, args);
      if (answer instanceof Promise) answer.then(done, done);
      else done();
      return answer;
    };
    return () => void (methods[name as string] = original);
  });
  return {
    whenIdle: () => (underWay === 0 ? undefined : (idle ??= Promise.withResolvers()).promise),
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
