import type { Job, TakeRequest } from '../../../cloud/src/domain/job-records.ts';
import type { JobStore } from '../../../cloud/src/store/job-store.ts';

/**
 * One change of one job that was committed: from the version that the rule was shown to the one that it made.
 */
export interface JobTransition {
  /** Undefined where the job is new. */
  before: Job | undefined;
  after: Job;
  removes: boolean;
  /** By a take or by a change. */
  by: 'submit' | 'take' | 'change';
}

/** A store that records the transitions it made. */
export function recordingJobStore(store: JobStore, tell: (move: JobTransition) => void): JobStore {
  return {
    ...store,
    submit: async (whole, idempotency) => {
      const outcome = await store.submit(whole, idempotency);
      if (outcome.created) tell({ before: undefined, after: outcome.job, removes: false, by: 'submit' });
      return outcome;
    },
    take: async (endpointId, terms) => {
      const moves: JobTransition[] = [];
      const begin: TakeRequest['startAttempt'] = (job, claim) => {
        const change = terms.startAttempt(job, claim);
        moves.push({ before: job, after: change.job, removes: false, by: 'take' });
        return change;
      };
      const taken = await store.take(endpointId, { ...terms, startAttempt: begin });
      moves.forEach(tell);
      return taken;
    },
    change: async (endpointId, seq, next) => {
      let move: JobTransition | undefined;
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
