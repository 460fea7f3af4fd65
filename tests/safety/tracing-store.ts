import type { Job } from '../../packages/cloud/src/store/job-records.ts';
import type { JobStore, TakeTerms } from '../../packages/cloud/src/store/jobs.ts';

/** One change of one job that was committed: from the version that the rule was shown to the one that it made. */
export interface Move {
  /** Undefined where the job is new. */
  before: Job | undefined;
  after: Job;
  removes: boolean;
  /** By a take or by a change. */
  by: 'submit' | 'take' | 'change';
}

/** A store that tells which moves it made. */
export function tracingStore(store: JobStore, tell: (move: Move) => void): JobStore {
  return {
    ...store,
    submit: async (whole, idempotency) => {
      const outcome = await store.submit(whole, idempotency);
      if (outcome.created) tell({ before: undefined, after: outcome.job, removes: false, by: 'submit' });
      return outcome;
    },
    take: async (endpointId, terms) => {
      const moves: Move[] = [];
      const begin: TakeTerms['begin'] = (job, claim) => {
        const change = terms.begin(job, claim);
        moves.push({ before: job, after: change.job, removes: false, by: 'take' });
        return change;
      };
      const taken = await store.take(endpointId, { ...terms, begin });
      moves.forEach(tell);
      return taken;
    },
    change: async (endpointId, seq, next) => {
      let move: Move | undefined;
      const done = await store.change(endpointId, seq, (job) => {
        const change = next(job);
        move =
          change === undefined
            ? undefined
            : { before: job, after: change.job, removes: change.remove === true, by: 'change' };
        return change;
      });
      if (move !== undefined && done?.changed === true) tell(move);
      return done;
    },
  };
}
