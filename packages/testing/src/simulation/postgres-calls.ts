import pg from 'pg';

export interface PostgresCalls {
  /** Connections that are being opened, and queries without an answer. */
  readonly underWay: number;
  stop(): void;
}

type Call = (this: unknown, ...args: unknown[]) => unknown;

/** Counts what waits for PostgreSQL in this process, but for one client. */
export function countPostgresCalls(except: pg.Client): PostgresCalls {
  let underWay = 0;
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
        if (!isDone) underWay -= 1;
        isDone = true;
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
    get underWay() {
      return underWay;
    },
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
